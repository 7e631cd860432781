"""Models from the hub: only what is needed, whole, as the hub says; whatever else happens is one line."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rbpx.errors import AbsentModelError, MeasureError, NotHereError, RbpxError
from rbpx.models.folder import hash_model
from rbpx.models.hub import check_snapshot, fetch
from rbpx.models.load import LoadedModel, load_model
from tests.support.hub import Hub, other_bytes
from tests.support.pickles import pickle_weights, plant_pickle

CPU = torch.device("cpu")
SECOND = "model-00002-of-00005.safetensors"
WANTED = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


def copy(folder: Path, place: Path) -> Path:
    return Path(shutil.copytree(folder, place))


def load(model: str | Path, revision: str | None = None, pickled: bool = False) -> LoadedModel:
    return load_model(str(model), revision, "float32", CPU, pickled=pickled)


def line_of(error: type[RbpxError], *args: Any) -> str:
    """The one line with which `fetch` gives up."""
    with pytest.raises(RbpxError) as caught:
        fetch(*args)
    assert type(caught.value) is error, caught.value
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_same_weights(loaded: LoadedModel, wanted: LoadedModel) -> None:
    for name, parameter in wanted.model.named_parameters():
        assert torch.equal(loaded.model.get_parameter(name), parameter), name


@pytest.fixture
def tiny(hub: Hub, tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> Hub:
    """A hub with org/tiny at two revisions, in a repository full of what is not needed."""
    main = copy(tiny_checkpoint("gpt2"), tmp_path / "main")
    for name in ("pytorch_model.bin", "modeling_own.py", "onnx/model.safetensors", "README.md", ".gitattributes"):
        (main / name).parent.mkdir(exist_ok=True)
        (main / name).write_text("not wanted")
    hub.add("org/tiny", main)
    hub.add("org/tiny", tiny_checkpoint("gpt2", seed=1), "step1")
    return hub


@pytest.fixture
def sharded(hub: Hub, tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> Hub:
    """A hub with org/sharded, whose weights are in two files and more."""
    from transformers import AutoModelForCausalLM

    folder = tiny_checkpoint("gpt_neox", folder=tmp_path / "sharded")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40KB")
    hub.add("org/sharded", folder)
    return hub


# --------------------------------------------------------------------------------------------------- what is fetched


@pytest.mark.parametrize("pickled", [False, True])
def test_only_what_is_needed_is_fetched_and_no_pickle_where_there_are_safetensors(
    pickled: bool, tiny: Hub, tiny_checkpoint: Callable[..., Path]
) -> None:
    folder, commit = fetch("org/tiny", None, pickled)
    assert commit == tiny.repos["org/tiny"]["main"][0]
    assert sorted(path.name for path in folder.iterdir()) == WANTED == tiny.resolved()
    for name in WANTED:
        assert (folder / name).read_bytes() == (tiny_checkpoint("gpt2") / name).read_bytes()


@pytest.mark.parametrize("revision", ["step1", "by its commit"])
def test_a_revision_is_a_branch_or_a_commit(revision: str, tiny: Hub, tiny_checkpoint: Callable[..., Path]) -> None:
    commit = tiny.repos["org/tiny"]["step1"][0]
    folder, fetched_commit = fetch("org/tiny", commit if revision == "by its commit" else revision)
    assert fetched_commit == commit
    assert (
        hash_model(folder, "m")
        == hash_model(tiny_checkpoint("gpt2", seed=1), "m")
        != hash_model(fetch("org/tiny", None)[0], "m")
    )


# ---------------------------------------------------------------------------------------------- what the hub has not


@pytest.mark.parametrize(
    ("model", "revision", "says"),
    [
        ("org/nosuch", None, ["model.id=org/nosuch", "does not exist on the hub"]),
        ("org/tiny", "nosuch", ["model.revision=nosuch", "org/tiny"]),
        ("org/gated 401", None, ["model.id=org/gated", "gated", "hf auth login"]),
        ("org/gated 403", None, ["model.id=org/gated", "gated", "hf auth login"]),
        ("org/not a name", None, ["model.id=org/not a name"]),
    ],
)
def test_what_the_hub_does_not_have_is_a_wrong_request(
    model: str, revision: str | None, says: list[str], tiny: Hub
) -> None:
    tiny.repos["org/gated"] = tiny.repos["org/tiny"]
    kind: type[RbpxError] = AbsentModelError
    if "gated" in model:
        model, status = model.split()
        tiny.gated["org/gated"], kind = int(status), RbpxError
    line = line_of(kind, model, revision)
    assert all(part in line for part in says), line


def test_a_shard_that_the_repository_lacks_is_named(sharded: Hub) -> None:
    (sharded.repos["org/sharded"]["main"][1] / SECOND).unlink()
    line = line_of(RbpxError, "org/sharded", None)
    assert "org/sharded is incomplete" in line
    assert SECOND in line


# --------------------------------------------------------------------------------------------------- a hub that fails


MOODS = ["nobody listens", "503", "silent", "hangs up", "log in first", "login elsewhere", "offline"]


@pytest.mark.parametrize("mood", MOODS)
def test_what_was_fetched_is_found_again_when_the_hub_fails_and_what_was_not_is_one_clear_failure(
    mood: str, tiny: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both within twenty seconds."""
    before = fetch("org/tiny", "step1")
    tiny.mood = mood
    if mood == "nobody listens":
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", mood == "offline")
    n_requests, began = len(tiny.asked), time.monotonic()
    assert fetch("org/tiny", "step1") == before
    assert mood not in ("nobody listens", "offline") or len(tiny.asked) == n_requests
    if mood == "offline":
        says = "org/tiny at revision step2 is no folder here and not in the hub's cache, and HF_HUB_OFFLINE is set; "
        says += 'fetch it where there is a network: .download(model="hub", **{"model.id": "org/tiny", '
        assert line_of(NotHereError, "org/tiny", "step2") == says + '"model.revision": "step2"})'
    else:
        says = "org/tiny at revision step2 is no folder here and not in the hub's cache, and the hub did not deliver it"
        assert says in line_of(MeasureError, "org/tiny", "step2")
    assert time.monotonic() - began < 20


def test_a_download_that_never_ends_is_one_line_and_the_next_try_fetches_only_what_is_missing(
    sharded: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = SimpleNamespace(
        time=time.time, sleep=lambda seconds: None
    )  # it is asked again after a second, five times
    monkeypatch.setattr("huggingface_hub.file_download.time", at_once)
    sharded.faults[SECOND] = "breaks"
    line = line_of(MeasureError, "org/sharded", None)
    assert f"org/sharded is incomplete, {SECOND} is missing" in line
    assert "run again" in line
    assert not [path for path in (tmp_path / "home").rglob("*.incomplete")], "nothing half-written"
    with pytest.raises(MeasureError, match="is incomplete, "):
        load("org/sharded")

    sharded.faults.clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    line = line_of(NotHereError, "org/sharded", None)
    assert f"org/sharded is incomplete, {SECOND} is missing, and HF_HUB_OFFLINE is set" in line
    assert line.endswith('.download(model="hub", **{"model.id": "org/sharded"})')

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    sharded.asked.clear()
    assert_same_weights(load("org/sharded"), load(sharded.repos["org/sharded"]["main"][1]))
    assert sharded.resolved() == [SECOND]


# ------------------------------------------------------------------------------------------------------ other contents


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_that_holds_something_else_than_the_hub_says_is_refused_until_it_is_deleted(
    name: str, tiny: Hub
) -> None:
    whole = (tiny.repos["org/tiny"]["main"][1] / name).read_bytes()
    tiny.faults[name] = "wrong bytes"
    with pytest.raises(MeasureError) as caught:
        load("org/tiny")
    line = str(caught.value)
    assert "\n" not in line
    assert f"{name} of org/tiny is corrupt" in line
    named = Path(line.split("delete ")[1].removesuffix(" and run again"))
    assert named.read_bytes() == other_bytes(whole)
    tiny.faults.clear()
    with pytest.raises(MeasureError, match="is corrupt"):
        load("org/tiny")  # the cache holds it; only deleting helps
    named.unlink()
    assert load("org/tiny").commit
    assert named.read_bytes() == whole


def test_the_content_of_large_files_is_read_once(tiny: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    monkeypatch.setattr("rbpx.files.digest._CACHED_FROM_BYTES", 10_000)
    folder, _ = fetch("org/tiny", None)
    read: list[str] = []
    plain = hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda file, kind: read.append(Path(file.name).name) or plain(file, kind)
    )
    for _ in range(2):
        check_snapshot(folder, "org/tiny", cache=tmp_path / "hashes.json")
        hash_model(folder, "org/tiny", tmp_path / "hashes.json")
    assert read == ["model.safetensors"]


def test_files_that_are_no_links_of_a_hub_cache_are_passed_over(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / "linked"
    folder.mkdir()
    for path in tiny_checkpoint("gpt2").iterdir():
        (folder / path.name).symlink_to(path)
    check_snapshot(folder, "mine")
    (folder / "config.json").unlink()
    other = tmp_path / ("0" * 64)
    other.write_bytes((tiny_checkpoint("gpt2") / "config.json").read_bytes())
    (folder / "config.json").symlink_to(other)
    with pytest.raises(MeasureError, match=r"config\.json of mine is corrupt"):
        check_snapshot(folder, "mine")


# ----------------------------------------------------------------------------------------------------------- pickles


@pytest.fixture
def pickles(hub: Hub, tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> Hub:
    """A hub with pickles: org/one (converted at refs/pr/1), org/several, org/both, org/trap (which runs code)."""
    for model, n_files in (("one", 1), ("several", 3)):
        hub.add(f"org/{model}", pickle_weights(copy(tiny_checkpoint("opt"), tmp_path / model), n_files))
    both = copy(tmp_path / "several", tmp_path / "both")
    shutil.copy(tmp_path / "one" / "pytorch_model.bin", both)
    hub.add("org/both", both)
    hub.add("org/one", tiny_checkpoint("opt"), "refs/pr/1")
    trap = pickle_weights(copy(tiny_checkpoint("opt"), tmp_path / "trap"))
    plant_pickle(trap / "pytorch_model.bin", tmp_path / "sprung")
    hub.add("org/trap", trap)
    return hub


@pytest.mark.parametrize("model", ["org/one", "org/several"])
def test_pickles_are_refused_before_anything_is_fetched_and_two_ways_on_are_named(model: str, pickles: Hub) -> None:
    line = line_of(RbpxError, model, None)
    assert "pytorch_model" in line
    assert "model.pickled=true" in line
    assert "model.revision=refs/pr/N" in line
    assert pickles.resolved() == []


@pytest.mark.parametrize(
    ("model", "files"),
    [
        ("org/one", ["pytorch_model.bin"]),
        ("org/both", ["pytorch_model.bin"]),
        ("org/several", [f"pytorch_model-0000{n}-of-00003.bin" for n in (1, 2, 3)]),
    ],
)
def test_pickles_that_are_asked_for_are_read(
    model: str, files: list[str], pickles: Hub, tiny_checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(model, pickled=True)
    assert_same_weights(loaded, load(tiny_checkpoint("opt")))
    assert [name for name in pickles.resolved() if name.endswith(".bin")] == files
    folder, _ = fetch(model, None, True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert fetch(model, None, True)[0] == folder
    (folder / files[-1]).unlink()
    line = line_of(NotHereError, model, None, True)
    assert line.endswith(f'.download(model="hub", **{{"model.id": "{model}", "model.pickled": True}})')


def test_the_bytes_of_pickles_are_of_the_identity(pickles: Hub) -> None:
    folder = pickles.repos["org/several"]["main"][1]
    before = hash_model(folder, "m", pickled=True)
    path = folder / "pytorch_model-00002-of-00003.bin"
    path.write_bytes(other_bytes(path.read_bytes()))
    assert hash_model(folder, "m", pickled=True) != before


def test_the_conversion_of_the_hub_is_a_revision(pickles: Hub, tiny_checkpoint: Callable[..., Path]) -> None:
    assert_same_weights(load("org/one", "refs/pr/1"), load(tiny_checkpoint("opt")))
    assert "pytorch_model.bin" not in pickles.resolved()


def test_a_pickle_that_runs_code_is_refused_and_never_runs(pickles: Hub, tmp_path: Path) -> None:
    for model in ("org/trap", tmp_path / "trap"):
        with pytest.raises(RbpxError) as caught:
            load(model, pickled=True)
        assert "is corrupt or holds code" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_of_another_name_is_not_what_was_asked_for(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = pickle_weights(copy(tiny_checkpoint("opt"), tmp_path / "model"))
    (folder / "pytorch_model.bin").rename(folder / "optimizer.bin")
    with pytest.raises(RbpxError, match=r"needs weights in safetensors, but .* has only optimizer\.bin"):
        load(folder, pickled=True)
