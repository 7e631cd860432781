"""Whole commands: each example of the help composed by Hydra, and one line for every wrong request."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from rbpx.cli.registry import names
from tests.support.commands import Answer, here, rbpx
from tests.support.stores import Family, Measured, build_member

# ------------------------------------------------------------------------------------------------------ what it teaches


def examples() -> list[str]:
    """The command lines that the help of each verb shows."""
    from rbpx.cli.help import help_text

    lines = [line.strip() for verb in names() if verb != "import" for line in help_text(verb).splitlines()]
    found = [line for line in lines if line.startswith("python -m rbpx") and "..." not in line and " VERB " not in line]
    assert len(found) >= len(names()) - 1
    return sorted(set(found))


@pytest.mark.parametrize("example", examples())
def test_each_example_of_the_help_is_a_right_request(example: str, cwd: Path) -> None:
    words = [word for word in shlex.split(example)[3:] if word != "-m"]
    if "-m" in shlex.split(example)[3:]:  # Hydra shows the configuration of one job only
        words = [re.sub(r"=([^,\[]+),.*", r"=\1", word) for word in words]
    answer = here(*words, "--cfg", "job", cwd=cwd, check=0)
    assert re.search("^(store: .*|size: .*|{})$", answer.stdout, re.MULTILINE)
    assert answer.stderr == ""


# ----------------------------------------------------------------------------------------------------- wrong requests


def assert_one_line(answer: Answer, names: Sequence[str]) -> None:
    """Exit status 2 and nothing but one line on stderr, that holds all of `names`."""
    assert "Traceback" not in answer.stderr, answer.stderr[-3000:]
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    lines = answer.stderr.splitlines()
    assert len(lines) == 1, answer.stderr
    assert lines[0].startswith("rbpx: ")
    absent = [name for name in names if not re.search(name, lines[0])]
    assert not absent, f"{absent} not in: {lines[0]}"


# What is typed, and what the one line must say (regular expressions): the wrong value, and what to do. @NAME is a place
# of the fixture `places`, @tiny names a model in full.
UNKNOWN = {
    "family": ("model=nosuch", ["model=nosuch", "ladder"]),
    "size": ("dataset=pydoc size=13z", ["size=13z", "3k"]),
    "dataset": ("dataset=pydco", ["dataset=pydco", "did you mean pydoc"]),
    "experiment": ("experiment=nosuch", ["experiment=nosuch", "demo"]),
    "protocol": ("protocol=rollng", ["protocol=rollng", "paper"]),
    "key": ("limti=3", ["limti", "limit"]),
    "key of a group": ("dataset=pydoc dataset.pth=x", [r"dataset\.pth", r"dataset\.path"]),
    "verb": ("mesure dataset=pydoc", ["mesure", "measure"]),
    "flag": ("--frmat json", ["--frmat", "--help"]),
    "law": ("fit laws=[rbp,nosuch] --store @store", ["nosuch", "cross_entropy"]),
    "tie rule": ("fit ties=nosuch --store @store", ["nosuch", "pessimistic"]),
    "dtype": ("dtype=int3", ["int3", "bfloat16"]),
    "format": ("fit --format xml --store @store", ["xml", "json"]),
    "id": ("show nosuch --store @store", ["nosuch", "status"]),
    "action": ("store tidy --store @store", ["tidy", "verify"]),
    "kind of configuration": ("--cfg bogus", ["bogus", "job"]),
    "folder of configurations": ("--config-dir /nosuch/folder", ["/nosuch/folder", "is not a folder"]),
}
MALFORMED = {
    "limit that is a word": ("limit=abc", ["limit", "abc", "(?i)integer|whole number"]),
    "k of zero": ("fit k=0 --store @store", ["k=0", "from 1"]),
    "k that is a word": ("fit k=abc --store @store", ["k=abc", "log"]),
    "k beyond the vocabulary": ("fit k=[320,1000] --store @store", ["320", "smaller"]),
    "list of families": ("model=[ladder,hub] dataset=pydoc", ["model", "-m model=ladder,hub"]),
    "list of datasets": ("@tiny dataset=[pydoc,stdlib]", ["dataset", "-m dataset=pydoc,stdlib"]),
    "values without a sweep": ("model=ladder,hub", ["model", "-m model="]),
    "flag without its value": ("fit --store @store --format", ["--format", "one argument"]),
    "store flag without its value": ("fit --store", ["--store", "one argument"]),
    "word where none belongs": ("fit limit", ["limit", "key=value"]),
    "store that is a file": ("dataset=pydoc --store @text", ["file.jsonl", "is a file", "folder"]),
    "store that is empty": ("fit --store @nothing", ["nothing", "no runs", "measure"]),
    "show in a store that is empty": ("show x --store @nothing", ["nothing", "no runs", "measure"]),
    "show without an id": ("show --store @store", ["id"]),
}
MODELS = {
    "id left out": ("model=hub dataset=pydoc", [r"model\.id", "hub|folder|FOLDER"]),
    "folder that is no model": ("model=hub model.id=@bare dataset=pydoc", ["bare", r"config\.json"]),
    "folder that is not there": ("model=hub model.id=/nosuch/folder dataset=pydoc", ["/nosuch/folder", "path"]),
    "file for a folder": ("model=hub model.id=@text dataset=pydoc", [r"file\.jsonl", "folder"]),
    "several without a family": ("model=hub model.id=[@xs,@s] dataset=pydoc", [r"model\.family"]),
    "number for an id": ("model=hub model.id=12 dataset=pydoc", [r"model\.id=12", "hub id"]),
    "pickled weights": ("model=hub model.id=@pickled dataset=pydoc", ["pickled", "safetensors"]),
    "configuration cut short": ("model=hub model.id=@cut dataset=pydoc", ["cut", r"config\.json"]),
}
TEXTS = {
    "file that is missing": ("@tiny dataset=file dataset.path=/nosuch.jsonl", [r"/nosuch\.jsonl", "path"]),
    "path left out": ("@tiny dataset=file", [r"dataset\.path"]),
    "file without documents": ("@tiny dataset=file dataset.path=@empty", [r"empty\.jsonl", "no text"]),
    "field that no row has": ("@tiny dataset=file dataset.path=@text dataset.fields=[body]", ["body", "text"]),
    "fields that are no list": ("@tiny dataset=file dataset.path=@text dataset.fields=text", ["fields", "list|List"]),
    "file that is not what its name says": ("@tiny dataset=file dataset.path=@broken", [r"broken\.jsonl"]),
    "comma in a path": ("@tiny dataset=file dataset.path=/x/a,b.jsonl", [r"dataset\.path", "several values"]),
    "bracket in a path": ("@tiny dataset=file dataset.path=/x/a(b.jsonl", ["mismatched input"]),
}


@pytest.fixture(scope="module")
def places(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the wrong requests name as @NAME: a measured store, and files and folders with something wrong."""
    place = tmp_path_factory.mktemp("wrong")
    for name in ("bare", "pickled", "cut"):
        (place / name).mkdir()
    (place / "pickled" / "config.json").write_text('{"model_type": "gpt2"}')
    (place / "pickled" / "pytorch_model.bin").write_bytes(b"")
    (place / "cut" / "config.json").write_text('{"model_type": ')
    (place / "cut" / "model.safetensors").write_bytes(b"")
    (place / "empty.jsonl").write_text("")
    (place / "broken.jsonl").write_text('{"text": "one"}\n{"text": "t\n')
    named = {name: place / name for name in ("bare", "pickled", "cut", "nothing")}
    named |= {name: place / f"{name}.jsonl" for name in ("empty", "broken")}
    return named | measured.family.folders | {"store": measured.store, "text": measured.family.text}


def typed(line: str, places: dict[str, Path]) -> list[str]:
    full = line.replace("@tiny", "model=hub model.id=@xs")
    return [re.sub(r"@(\w+)", lambda name: str(places[name[1]]), word) for word in full.split()]


WRONG = {
    f"{kind} {name}": case
    for kind, cases in {"unknown": UNKNOWN, "malformed": MALFORMED, "model": MODELS, "text": TEXTS}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("line", "names"), WRONG.values(), ids=WRONG)
def test_a_wrong_request_is_one_line_that_says_what_to_do(
    line: str, names: list[str], places: dict[str, Path], cwd: Path, tmp_path: Path
) -> None:
    words = typed(line, places)
    if "@store" not in line and "--store" not in line:
        words += ["--store", str(tmp_path / "store")]
    assert_one_line(here(*words, cwd=cwd), names)
    assert not (tmp_path / "store").exists()


SEPARATE = ["unknown family", "unknown key", "unknown verb", "malformed limit that is a word", "model id left out"]


@pytest.mark.parametrize("name", SEPARATE)
def test_a_process_of_its_own_says_no_more_than_that_line(name: str, places: dict[str, Path], cwd: Path) -> None:
    """Errors of each stage once as users meet them: Hydra's options, its keys, our words, its types, its missing."""
    line, names = WRONG[name]
    assert_one_line(rbpx(*typed(line, places), cwd=cwd, env={"RBPX_STORE": str(places["nothing"])}), names[:1])


@pytest.mark.parametrize("wrong", ["k=0", "k=abc", "laws=nosuch"])
def test_a_wrong_key_of_the_laws_is_refused_before_anything_is_measured(
    wrong: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    answer = here(*family.words("xs"), wrong, "--store", tmp_path / "store", cwd=cwd)
    assert_one_line(answer, [wrong])
    assert not list((tmp_path / "store").glob("runs/[!_]*"))


def broken_member(name: str, place: Path) -> Path:
    """A model that looks right until it is loaded."""
    folder = build_member(place / name, "xs")
    if name == "tokenizer-cut":
        text = (folder / "tokenizer.json").read_text()
        (folder / "tokenizer.json").write_text(text[: len(text) // 2])
    elif name == "tokenizer-of-another-kind":
        (folder / "tokenizer.json").write_text("{}")
    elif name == "weights-cut":
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    elif name == "unknown-architecture":
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"model_type": "nosuch"}))
    else:
        assert name == "no-language-model"
        config = {"model_type": "t5", "vocab_size": 320, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1}
        (folder / "config.json").write_text(json.dumps(config | {"num_heads": 2}))
    return folder


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tokenizer-cut", "tokenizer"),
        ("tokenizer-of-another-kind", "tokenizer"),
        ("weights-cut", "cannot be loaded"),
        ("unknown-architecture", "cannot be loaded"),
        ("no-language-model", "cannot be loaded"),
    ],
)
def test_a_model_that_cannot_be_measured_is_named_with_the_reason(
    name: str, says: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    folder = broken_member(name, tmp_path)
    words = ["model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={family.text}"]
    assert_told(here(*words, "--store", tmp_path / "store", cwd=cwd), rf"{name}.*{says}")


def assert_told(answer: Answer, says: str) -> None:
    """A request found wrong only in its cell: status 2, no traceback, one line of reason after the progress."""
    assert "Traceback" not in answer.stderr, answer.stderr[-3000:]
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    told = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(told) == 1, answer.stderr
    assert re.search(says, told[0]), told[0]


# -------------------------------------------------------------------------------------------------- what goes where


def test_an_output_that_cannot_be_written_is_a_wrong_request(measured: Measured, cwd: Path) -> None:
    words = ["sql", "SELECT 1 AS one", "--store", measured.store, "--output", "/nosuch/folder/answer.csv"]
    assert_one_line(here(*words, cwd=cwd), ["/nosuch/folder/answer.csv", "name another"])
