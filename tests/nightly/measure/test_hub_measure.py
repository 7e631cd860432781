"""From the hub into the store by command: the real tokenizers of all four architectures, and heads of every kind."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tokenizers import ByteLevelBPETokenizer, Tokenizer

from rbpx.models.tokenizer import load_tokenizer
from tests.support.checkpoints import CONTEXT, VOCAB_ROWS, build_tokenizer
from tests.support.commands import here
from tests.support.model_hub import Hub
from tests.support.real_tokenizers import HELLO_WORLD, ROWS, build_real
from tests.support.reference import reference_rank, reference_rows


def tokens_of(store: Path, size: str) -> dict[str, np.ndarray]:
    """The rows of the only run of a size."""
    cells = [json.loads(path.read_text()) for path in (store / "cells").glob("*.json")]
    run_id = next(cell["run_id"] for cell in cells if cell["size"] == size)
    table = pq.read_table(store / "runs" / run_id / "tokens.parquet")
    return {name: table[name].to_numpy() for name in table.column_names if name != "run_id"}


def test_all_four_architectures_are_measured_with_their_real_tokenizers(
    hub: Hub, shared_data: Path, cwd: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    tokenizers = shared_data / "data" / "tokenizers"
    folders = {arch: build_real(arch, tokenizers, tmp_path / "models" / arch) for arch in ROWS}
    for arch, folder in folders.items():
        hub.add(f"org/{arch}", folder)
        assert load_tokenizer(folder, arch)("Hello world")["input_ids"] == HELLO_WORLD[arch]
    store, ids = tmp_path / "store", ",".join(f"org/{arch}" for arch in ROWS)
    words = ["model=hub", f"model.id=[{ids}]", "model.family=real", "model.pickled=true", "dataset=file"]
    text = ["dataset.path=" + str(shared_data / "data" / "gsm8k_test.jsonl"), "dataset.fields=[question]", "limit=1"]
    answer = here("measure", *words, *text, f"store={store}", cwd=cwd, check=0)
    assert "Traceback" not in answer.stderr
    assert hub.resolved() == sorted({path.name for folder in folders.values() for path in folder.iterdir()})
    document = json.loads((store / "cells").glob("*.json").__next__().read_text())["config"]["dataset"]["path"]
    lines = Path(document).read_text(encoding="utf-8").splitlines()
    question = json.loads(lines[int(np.random.default_rng(42).permutation(len(lines))[0])])["question"]
    plain: dict[str, Callable[[str], list[int]]] = {
        "gpt2": ByteLevelBPETokenizer(str(tokenizers / "gpt2_encoder.json"), str(tokenizers / "gpt2_vocab.bpe")).encode,
        "opt": ByteLevelBPETokenizer(
            str(tokenizers / "opt_gpt2-vocab.json"), str(tokenizers / "opt_gpt2-merges.txt")
        ).encode,
        "gpt_neox": Tokenizer.from_file(str(folders["gpt_neox"] / "tokenizer.json")).encode,
        "qwen2": lambda text: load_tokenizer(folders["qwen2"], "qwen2")(text, return_tensors=None),
    }
    for arch, folder in folders.items():
        encoded: Any = plain[arch](question)
        wanted_ids = list(encoded["input_ids"] if arch == "qwen2" else encoded.ids)[: 127 if arch == "opt" else 128]
        before = [2] if arch == "opt" else []
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        rows = tokens_of(store, arch)
        assert rows["token_id"].tolist() == wanted_ids[1:], arch
        assert rows["position"].tolist() == list(range(1 + len(before), len(before) + len(wanted_ids)))
        with torch.no_grad():
            logits_TV = model(torch.tensor([before + wanted_ids])).logits[0]
        assert logits_TV.shape[1] == ROWS[arch]
        for n in range(0, len(rows["position"]), 16):
            position = int(rows["position"][n])
            greater, ties, logprob = reference_rank(logits_TV[position - 1].tolist(), int(rows["token_id"][n]))
            assert (rows["greater"][n], rows["ties"][n]) == (greater, ties), (arch, position)
            assert math.isclose(rows["logprob"][n], logprob, abs_tol=1e-4)


def test_a_model_that_is_not_there_leaves_nothing_in_status(
    hub: Hub, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    hub.add("org/tiny", tiny_checkpoint("gpt2"))
    text = ("dataset=file", f"dataset.path={tiny_jsonl}", f"store={tmp_path / 's'}")
    for words, status in (
        (("model.id=org/tinny",), 2),
        (("model.id=org/tiny", "model.revision=step1x"), 2),
        (("model.id=[org/tiny,org/tinny,./nosuch]", "model.family=mine"), 1),
    ):
        assert "not" in here("measure", "model=hub", *words, *text, cwd=cwd, check=status).stderr
    rows = json.loads(here("status", text[-1], "--format", "json", cwd=cwd, check=0).stdout)
    assert [(row["state"], row["family"], row["size"]) for row in rows] == [("done", "mine", "tiny")]


@pytest.mark.parametrize(
    ("config", "own", "after"),
    [
        ("Gemma2Config", {"head_dim": 8, "final_logit_softcapping": 2.0}, "softcap 2"),
        ("CohereConfig", {"logit_scale": 0.0613}, "scale 0.0613"),
        ("GraniteConfig", {"logits_scaling": 7.0}, "scale 0.142857143"),
        ("LlamaConfig", {}, "unknown"),
    ],
)
def test_what_a_model_does_behind_its_head_is_measured_as_it_emits_it(
    config: str,
    own: dict[str, Any],
    after: str,
    hub: Hub,
    tiny_jsonl: Path,
    tiny_text: list[str],
    cwd: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import transformers

    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    common = {"vocab_size": VOCAB_ROWS, "max_position_embeddings": CONTEXT, "initializer_range": 0.2}
    special = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(
            getattr(transformers, config)(**shape, **common, **special, num_key_value_heads=2, **own)
        ).eval()
    if after == "unknown":
        plain = type(model).forward

        def swapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            """Its second half of the vocabulary is scaled: no factor and no cap explain that."""
            emitted = plain(self, *args, **kwargs)
            factors_V = torch.where(torch.arange(VOCAB_ROWS) < VOCAB_ROWS // 2, 1.0, 0.5)
            emitted.logits = emitted.logits * factors_V
            return emitted

        monkeypatch.setattr(type(model), "forward", swapped)
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tokenizer = build_tokenizer("gpt2")
    tokenizer.save_pretrained(folder)
    hub.add("org/head", folder)
    store = tmp_path / "store"
    words = ["model=hub", "model.id=org/head", "dataset=file", f"dataset.path={tiny_jsonl}", f"store={store}"]
    here("measure", *words, cwd=cwd, check=0)
    manifest = json.loads(next((store / "runs").glob("*/manifest.json")).read_text())
    assert manifest["head"] == after
    rows = tokens_of(store, "head")
    order = np.random.default_rng(42).permutation(len(tiny_text))
    expected = []
    for doc_id, index in enumerate(order):
        ids = tokenizer(tiny_text[index])["input_ids"][:CONTEXT]
        expected += [(doc_id, *row) for row in reference_rows(model, ids, tokenizer.all_special_ids)]
    names = ("doc_id", "position", "token_id", "greater", "ties")
    for name, wanted in zip(names, zip(*(row[:-1] for row in expected), strict=True), strict=True):
        np.testing.assert_array_equal(rows[name], wanted, err_msg=name)
    np.testing.assert_allclose(rows["logprob"], [row[-1] for row in expected], rtol=0, atol=1e-4)
