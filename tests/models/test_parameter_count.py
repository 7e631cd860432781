"""S and the total of a model, counted by hand; test_families.py has the published counts."""

from torch import nn

from rbpx.models.architecture import non_embedding_params, total_params


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
