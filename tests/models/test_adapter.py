"""Adapters of peft: ranks of peft's own model, known by the bytes of both, variants of their base, or refused."""

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from rbpx.config.options import Quantise
from rbpx.errors import RbpxError
from rbpx.models import load
from rbpx.models.load import load_model
from tests.support.adapters import RANK, build_adapter, needs_peft, plain, tuned_by_peft
from tests.support.checkpoints import TINY_TEXT
from tests.support.commands import here
from tests.support.hub import Hub
from tests.support.measuring import CPU, assert_same_rows, measure, windows_of
from tests.support.reference import reference_rows
from tests.support.stores import cell_records, manifests, run_folders

IDS = torch.arange(3, 40)[None]


def refusal(base: Path, folder: Path | str) -> str:
    """The one line with which an adapter is refused."""
    with pytest.raises(RbpxError) as caught:
        load_model(str(base), None, "float32", CPU, adapter=str(folder))
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"model.adapter={folder} ")
    return line


@needs_peft
@pytest.mark.parametrize(
    ("arch", "kind"),
    [
        *(("qwen2", kind) for kind in ("lora", "pissa", "converted", "loha", "ia3", "head", "embedding")),
        *(("gpt2", kind) for kind in ("lora", "dora", "rslora", "pissa", "head", "saved")),
    ],
)
def test_ranks_are_those_of_the_model_that_peft_makes(
    arch: str, kind: str, tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    base = tiny_checkpoint(arch)  # its embedding is its head too, which a merge must not change both of
    folder = build_adapter(kind, arch, base, tmp_path / "tuned")
    loaded = load_model(str(base), None, "float32", CPU, adapter=str(folder))
    theirs = tuned_by_peft(base, folder)
    assert (theirs(IDS).logits - plain(base)(IDS).logits).abs().max() > 0.1
    windows, special = windows_of(loaded, TINY_TEXT), set(loaded.tokenizer.all_special_ids)
    expected = [(each.doc_id, *row) for each in windows for row in reference_rows(theirs, each.ids.tolist(), special)]
    assert_same_rows(measure(loaded, windows), expected, moved=1)


@needs_peft
def test_in_16_bits_an_adapter_is_merged_to_their_rounding(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    base = tiny_checkpoint("qwen2")
    folder = build_adapter("lora", "qwen2", base, tmp_path / "tuned")
    ours = load_model(str(base), None, "bfloat16", CPU, adapter=str(folder)).model(IDS).logits
    expected = tuned_by_peft(base, folder)(IDS).logits
    assert (ours - expected).norm() < 0.05 * expected.norm() < 0.5 * (plain(base)(IDS).logits - expected).norm()


@needs_peft
@pytest.mark.skipif(find_spec("torchao") is None, reason="torchao is not installed: pip install 'rbpx[quantise]'")
@pytest.mark.parametrize("kind", ["lora", "pissa"])
def test_weights_are_rounded_below_an_adapter_that_keeps_its_own(
    kind: str, tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    base = tiny_checkpoint("qwen2")
    folder = build_adapter(kind, "qwen2", base, tmp_path / "tuned")
    ours = load_model(str(base), None, "float32", CPU, quantise=Quantise.nf4, adapter=str(folder)).model
    theirs = tuned_by_peft(base, folder)
    of_ours = dict(ours.named_modules())
    with torch.no_grad():
        for name, layer in theirs.get_base_model().named_modules():
            if isinstance(layer, torch.nn.Linear) and "lora_" not in name and name != "lm_head":
                rounded = of_ours[name]  # what it multiplies by, without asking torchao how it keeps it
                eye = rounded(torch.eye(layer.in_features)).T
                layer.weight.copy_(eye if layer.bias is None else eye - layer.bias[:, None])
        assert (ours(IDS).logits - theirs(IDS).logits).abs().max() < 1e-3
        assert (ours(IDS).logits - tuned_by_peft(base, folder)(IDS).logits).abs().max() > 0.1


@needs_peft
def test_an_adapter_beside_the_weights_is_put_into_them_only_where_it_is_asked_for(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    base = tiny_checkpoint("qwen2", folder=tmp_path / "both")
    build_adapter("lora", "qwen2", base, base)
    without = load_model(str(base), None, "float32", CPU)
    within = load_model(str(base), None, "float32", CPU, adapter=str(base))
    (base / "adapter_config.json").rename(tmp_path / "aside.json")
    expected = plain(base)(IDS).logits
    assert torch.equal(without.model(IDS).logits, expected)
    (tmp_path / "aside.json").rename(base / "adapter_config.json")
    assert (within.model(IDS).logits - expected).abs().max() > 0.1


@needs_peft
def test_base_and_adapters_are_variants_known_by_their_bytes(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, tmp_path: Path, cwd: Path
) -> None:
    base, store = tiny_checkpoint("qwen2"), tmp_path / "store"
    a, b = (build_adapter("lora", "qwen2", base, tmp_path / name, seed) for seed, name in enumerate("ab"))
    text = ("model.family=mine", "dataset=file", f"dataset.path={tiny_jsonl}", "--store", store)

    def measured(*words: str) -> dict[str | None, dict[str, Any]]:
        """Measure; the newest run of each variant."""
        here("measure", "model=hub", *words, *text, cwd=cwd, check=0)
        runs, cells = manifests(store), sorted(cell_records(store), key=lambda cell: str(cell["asked_at"]))
        return {cell["variant"]: runs[cell["run_id"]] for cell in cells}

    alone = measured(f"model.id={base}")
    asked = (f"model.id={base}", f"model.adapter=[null,{a},{b}]")
    for verb in ("status", "plan"):
        states = here(verb, "model=hub", *asked, *text, cwd=cwd, check=0).stdout
        lines = [line.split() for line in states.splitlines() if "qwen2-0" in line and "state" not in line]
        assert [("with" in line, line[-1]) for line in lines if line[-1] in ("done", "missing")] == [
            (False, "done"),
            (True, "missing"),
            (True, "missing"),
        ]
    runs = measured(*asked)
    assert list(runs) == [None, "a", "b"]
    assert runs[None] == alone[None]
    assert len({run["cross_entropy_nats"] for run in runs.values()}) == 3
    for name in ("non_embedding_params", "total_params"):
        assert len({run[name] for run in runs.values()}) == 1
    of_block = RANK * ((32 + 32) + (96 + 32))  # q_proj is 32 x 32, down_proj 96 x 32: in and out of each
    assert [run.get("added_params") for run in runs.values()] == [None, 2 * of_block, 2 * of_block]
    assert runs["a"]["adapter"]["base_weights_hash"] == runs[None]["weights_hash"]
    assert "peft" in runs["a"]["versions"]

    measured(f"model.id={a}")  # finds its base, and is the same
    assert measured(f"model.id=[{a},{b}]").keys() == runs.keys()
    moved = shutil.copytree(a, tmp_path / "elsewhere" / "a")
    measured(f"model.id={base}", f"model.adapter={moved}")
    assert len(run_folders(store)) == 3
    weights = bytearray((moved / "adapter_model.safetensors").read_bytes())
    weights[-2] ^= 1
    (moved / "adapter_model.safetensors").write_bytes(weights)
    assert measured(f"model.id={base}", f"model.adapter={moved}")["a"]["run_id"] != runs["a"]["run_id"]
    assert len(run_folders(store)) == 4

    again = ("audit", "model.family=mine", f"model.adapter={b}", "dtype=float32", "limit=2", "--format", "json")
    rows = json.loads(here(*again, "--store", store, cwd=cwd, check=0).stdout)
    assert {row["variant"] for row in rows} == {"b"}
    assert {row["largest_logprob_move"] for row in rows if row["kind"] == "run"} == {0.0}
    query = "SELECT variant, added_params FROM runs WHERE variant = 'b'"
    told = here("sql", query, "--format", "csv", "--store", store, cwd=cwd, check=0).stdout
    assert told.split() == ["variant,added_params", f"b,{2 * of_block}"]


@needs_peft
def test_an_adapter_finds_its_base_on_the_hub(
    hub: Hub, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, tmp_path: Path, cwd: Path
) -> None:
    base, store = tiny_checkpoint("qwen2"), tmp_path / "store"
    hub.add("org/tiny", base)
    folder = build_adapter("lora", "qwen2", base, tmp_path / "tuned")
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "org/tiny"}))
    words = ("measure", "model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={tiny_jsonl}")
    for _ in range(2):
        here(*words, "--store", store, cwd=cwd, check=0)
    (cell,) = cell_records(store)
    assert (cell["model"], cell["variant"], cell["size"]) == ("org/tiny", "tuned", "tiny")
    assert cell["commit"]
    hub.add("org/lora", folder)
    words = ("measure", "model=hub", "model.id=org/lora", "dataset=pydoc", "limit=2", "--store", store)
    told = here(*words, cwd=cwd, check=2).stderr
    assert (
        "model.id=org/lora is an adapter, which is here now; put it into its base: model.id=org/tiny model.ad" in told
    )
    place = told.rpartition("model.adapter=")[2].strip()
    here("measure", "model=hub", "model.id=org/tiny", f"model.adapter={place}", *words[3:], cwd=cwd, check=0)


@needs_peft
@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"hidden_size": 16}, "size mismatch for"),
        ({"layers": 3}, "it has no weights for some layers of the model"),
        ({"layers": 1}, "the model has no place for base_model.model.model.layers.1"),
        ({"arch": "gpt2"}, "Target modules"),
    ],
    ids=str,
)
def test_an_adapter_of_another_model_is_refused(
    shape: dict[str, Any], told: str, tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = build_adapter("lora", "qwen2", own := tiny_checkpoint("qwen2"), tmp_path / "tuned")
    line = refusal(tiny_checkpoint(**{"arch": "qwen2"} | shape), folder)
    assert told in line
    assert f"it was trained on {own}" in line


@needs_peft
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("prompt", "PROMPT_TUNING puts a prompt of its own before each text, which shifts its positions"),
        ("prefix", "PREFIX_TUNING puts a prompt of its own before each text, which shifts its positions"),
        ("alora", "aLoRA does not support merging"),
    ],
)
def test_what_depends_on_more_than_the_weights_is_refused(
    kind: str, told: str, tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    base = tiny_checkpoint("qwen2")
    assert told in refusal(base, build_adapter(kind, "qwen2", base, tmp_path / "tuned"))


def _folder(path: Path, **config: Any) -> Path:
    """A folder that claims to be an adapter, with whatever peft would have written."""
    path.mkdir()
    (path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"} | config))
    return path


def test_a_wrong_request_is_one_line_and_measures_nothing(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    base, store = tiny_checkpoint("qwen2"), tmp_path / "store"
    bare = _folder(tmp_path / "bare", base_model_name_or_path=str(base))
    gone = _folder(tmp_path / "gone", base_model_name_or_path="/no/such/base")
    nameless = _folder(tmp_path / "nameless", base_model_name_or_path=None)
    for words, told in (
        ((f"model.id={base}", f"model.adapter=[{base}]"), "is no folder with adapter_config.json"),
        ((f"model.id={base}", "model.adapter=org/lora"), "fetch an adapter of the hub with `hf download ORG/NAME"),
        ((f"model.id={base}", f"model.adapter={bare}"), "needs its weights, but the folder has no adapter_model.saf"),
        ((f"model.id={bare}", f"model.adapter={gone}"), f"model.id={bare} is an adapter itself, and model.adapter="),
        (
            (f"model.id={gone}",),
            "is an adapter of /no/such/base, which is not here; give the base: model.id=BASE mode",
        ),
        ((f"model.id={nameless}",), "is an adapter that does not name its base; give the base"),
    ):
        answer = here("measure", "model=hub", *words, "dataset=pydoc", "--store", store, cwd=cwd, check=2)
        assert told in answer.stderr
        assert answer.stderr.count("\n") == 1
        assert not store.exists()
    (bare / "adapter_model.bin").write_bytes(b"")
    words = ("model=hub", f"model.id={base}", f"model.adapter={bare}", "dataset=pydoc", "--store", store)
    assert (
        "has only adapter_model.bin, a pickle; model.pickled=true" in here("measure", *words, cwd=cwd, check=2).stderr
    )


def test_without_peft_an_adapter_fails_in_one_line(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "find_spec", lambda name: None)
    folder = _folder(tmp_path / "tuned")
    assert "needs peft, which is not installed: pip install 'rbpx[adapters]'" in refusal(
        tiny_checkpoint("qwen2"), folder
    )
