"""The command line: what it teaches, what it prints where, one line for a request that only its cell finds wrong."""

import json
import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest

from rbpx.cli.argv import parse
from rbpx.cli.help import help_text
from rbpx.cli.registry import asking, names
from rbpx.config.request import KEYS
from rbpx.errors import RbpxError
from tests.support.commands import Answer, here
from tests.support.composed import requests_of
from tests.support.stores import RESAMPLES, Family, run_folders, write_jsonl
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five runs."""
    return write_store(tmp_path_factory.mktemp("cli") / "store", Truth(), seed=1, n_documents=8, n_tokens=20).root


# ------------------------------------------------------------------------------------------------------ what it teaches


def test_version_is_that_of_the_installed_package(cwd: Path) -> None:
    assert here("--version", cwd=cwd, check=0).stdout == f"rbpx {version('rbpx')}\n"


def test_the_first_page_fits_a_terminal_and_names_every_verb_as_the_page_of_all_does_every_key() -> None:
    first, page = help_text(""), help_text("all")
    assert (len(first.splitlines()) <= 40, max(map(len, first.splitlines())) <= 120) == (True, True)
    assert [verb for verb in names() if not (re.search(rf"\b{verb}\b", first) and f" {verb} " in page)] == []
    assert [name for name, key in KEYS.items() if key.help and f"{name}=" not in page] == []
    for verb in (verb for verb in names() if not asking(verb).is_of_file):
        own = help_text(verb)
        assert [name for name, key in asking(verb).keys.items() if key.help and f"{name}=" not in own] == [], verb
    with pytest.raises(RbpxError, match=r"--help nosuch: no such page"):
        help_text("nosuch")


def test_a_page_names_the_formats_that_its_verb_has(store: Path, cwd: Path) -> None:
    for verb, words, form in (("status", [], "html"), ("sql", ["FROM runs"], "tex"), ("units", [], "md")):
        (line,) = re.findall(r"^  format=.*$", help_text(verb), re.MULTILINE)
        answer = here(verb, *words, "--format", form, "--store", store, cwd=cwd)
        assert answer.returncode == (0 if verb == "units" else 2)
        assert ("prints table, csv or json" in " ".join(answer.stderr.split())) is (verb != "units")
        assert bool(re.search(rf"\b{form}\b", line)) is (verb == "units")


def test_each_example_of_the_help_is_a_right_request() -> None:
    lines = {line.strip() for verb in names() for line in help_text(verb).splitlines()}
    examples = [line for line in lines if line.startswith("python -m rbpx") and "..." not in line]
    examples = [line for line in examples if " VERB " not in line]
    assert len(examples) >= len(names())
    for line in examples:
        assert requests_of(shlex.split(line)[3:]), line


def test_cfg_prints_the_configuration_and_measures_nothing(cwd: Path, tmp_path: Path) -> None:
    words = ("limit=7", "size=[3k]", "--store", tmp_path / "store", "--cfg", "job", "seed=3")
    answer = here(*words, cwd=cwd, check=0)
    assert {"limit: 7", "seed: 3", f"store: {tmp_path / 'store'}"} <= set(answer.stdout.splitlines())
    assert "family: ladder" in answer.stdout
    assert answer.stderr == ""
    assert not (tmp_path / "store").exists()


def test_flags_may_stand_anywhere_and_be_written_as_overrides() -> None:
    lines = ["-m limit=3,5 size=3k", "limit=3,5 -m size=3k", "limit=3,5 size=3k --multirun"]
    assert all(parse(line.split()).sweeps for line in lines)
    assert {parse(line.split()).overrides for line in lines} == {("limit=3,5", "size=3k")}
    lines = ["--format json --store a/b fit k=3", "fit --store=a/b k=3 --format=json", "fit store=a/b format=json k=3"]
    one, *others = (requests_of(line.split()) for line in lines)
    assert [(request.store, request.format.value, request.k) for request in one] == [("a/b", "json", one[0].k)]
    assert [[each.typed for each in of] for of in others] == [[each.typed for each in one]] * 2


# -------------------------------------------------------------------------------------------------- what goes where


def test_a_run_prints_laws_to_stdout_as_json_alone_and_progress_to_stderr(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    words = [*family.words("xs"), RESAMPLES, "limit=2", "--store", tmp_path / "store", "--format", "json"]
    answer = here(*words, cwd=cwd, check=0)
    rows = json.loads(answer.stdout)
    assert {row["status"] for row in rows} == {"too_few_sizes"}
    assert len(re.findall(r"tokens at [\d,]+ tokens/s", answer.stderr)) == 1
    assert "alpha" not in answer.stderr
    written = here(*words[:-2], "--output", tmp_path / "laws.json", cwd=cwd, check=0)
    assert (written.stdout, json.loads((tmp_path / "laws.json").read_text())) == ("", rows)


def test_show_prints_where_a_run_comes_from(store: Path, cwd: Path) -> None:
    run_id = next(iter(run_folders(store)))
    run = json.loads(here("show", run_id, "--store", store, cwd=cwd, check=0).stdout)
    assert (run["run_id"], run["dataset"]) == (run_id, "synthetic")


# ------------------------------------------------------------------------------------------- wrong in its cell alone


def assert_told(answer: Answer, says: str) -> None:
    """A request found wrong only in its cell: status 2, no traceback, one line of reason after the progress."""
    assert "Traceback" not in answer.stderr, answer.stderr[-3000:]
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    told = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(told) == 1, answer.stderr
    assert re.search(says, told[0]), told[0]


def test_a_model_that_cannot_be_measured_is_named_with_the_reason(family: Family, cwd: Path, tmp_path: Path) -> None:
    """Found before anything is loaded."""
    text = ("dataset=file", f"dataset.path={family.text}", "--store", tmp_path / "store")
    for name, file, says in (("bare", None, r"bare.*config\.json"), ("pickled", "pytorch_model.bin", "safetensors")):
        (tmp_path / name).mkdir()
        if file is not None:
            (tmp_path / name / file).write_bytes(b"")
            (tmp_path / name / "config.json").write_text('{"model_type": "gpt2"}')
        assert_told(here("model=hub", f"model.id={tmp_path / name}", *text, cwd=cwd), says)


def test_a_text_with_nothing_to_score_is_named(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = family.words("xs", text=write_jsonl(tmp_path / "short.jsonl", "a", "b", "c"))
    assert_told(here("measure", *words, "--store", tmp_path / "store", cwd=cwd), "nothing to score")


def test_an_absent_accelerator_is_a_wrong_request(family: Family, cwd: Path, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    answer = here("measure", *family.words("xs"), "device=cuda", "--store", tmp_path / "store", cwd=cwd)
    assert_told(answer, "device=cuda.*device=cpu")
