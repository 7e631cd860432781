"""S against the published counts: every model of the reference table, built without weights on the meta device."""

import pytest
from torch import nn

from rbpx.models.architecture import non_embedding_params, total_params
from tests.support.published_shapes import Shape, build_published

# Shape and S of one model a family; S as released by the authors of the RBP paper (param_count.json of
# ybq22/relative-based-scaling-law), shapes from the models' published configurations.
GPT2 = {
    "model": "openai-community/gpt2", "family": "gpt2", "layers": 12, "hidden": 768, "heads": 12, "kv_heads": 12,
    "ffn": 3072, "vocab_rows": 50257, "max_positions": 1024, "tied_embeddings": 1,
}  # fmt: skip
OPT_350M = {
    "model": "facebook/opt-350m", "family": "opt", "layers": 24, "hidden": 1024, "heads": 16, "kv_heads": 16,
    "ffn": 4096, "vocab_rows": 50272, "max_positions": 2048, "tied_embeddings": 1,
}  # fmt: skip
PYTHIA_14M = {
    "model": "EleutherAI/pythia-14m", "family": "pythia", "layers": 6, "hidden": 128, "heads": 4, "kv_heads": 4,
    "ffn": 512, "vocab_rows": 50304, "max_positions": 2048, "tied_embeddings": 0,
}  # fmt: skip
QWEN_05B = {
    "model": "Qwen/Qwen2.5-0.5B", "family": "qwen2.5", "layers": 24, "hidden": 896, "heads": 14, "kv_heads": 2,
    "ffn": 4864, "vocab_rows": 151936, "max_positions": 32768, "tied_embeddings": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(GPT2, 85_056_000), (OPT_350M, 303_357_952), (PYTHIA_14M, 1_189_888), (QWEN_05B, 357_898_112)],
    ids=["gpt2", "opt-350m", "pythia-14m", "Qwen2.5-0.5B"],
)
def test_one_model_of_each_family_has_the_released_count(shape: Shape, expected: int) -> None:
    assert non_embedding_params(build_published(shape)) == expected


def test_an_untied_head_is_in_the_total_and_not_in_the_size() -> None:
    tied, untied = (build_published(PYTHIA_14M | {"tied_embeddings": tied}) for tied in (1, 0))
    assert non_embedding_params(tied) == non_embedding_params(untied) == 1_189_888
    assert total_params(untied) - total_params(tied) == 50_304 * 128


class Toy(nn.Module):
    """Ten tokens, four positions, width 3: a layer used twice, a projection, and a head with a bias or none."""

    def __init__(self, has_head: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(10, 3)
        self.positions = nn.Embedding(4, 3)
        self.layer = nn.Linear(3, 3)  # 12
        self.again = self.layer
        self.project_out = nn.Linear(3, 2, bias=False)  # 6
        self.norm = nn.LayerNorm(2)  # 4
        self.head = nn.Linear(2, 10) if has_head else None  # 30

    def get_output_embeddings(self) -> nn.Module | None:
        return self.head


def test_shared_layers_count_once_and_the_bias_of_the_head_not_at_all() -> None:
    assert non_embedding_params(Toy(has_head=True)) == 12 + 6 + 4
    assert total_params(Toy(has_head=True)) == 30 + 12 + 12 + 6 + 4 + 30


def test_a_model_without_a_head_has_a_size() -> None:
    assert non_embedding_params(Toy(has_head=False)) == 12 + 6 + 4
    assert total_params(Toy(has_head=False)) == 30 + 12 + 12 + 6 + 4
