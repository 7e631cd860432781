"""The command line: what it teaches, what it prints where, one line for a request that only its cell finds wrong."""

import csv
import io
import json
import re
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from rbpx.cli.argv import parse
from rbpx.cli.help import help_text
from rbpx.cli.registry import asking, names
from rbpx.config.request import KEYS
from rbpx.errors import RbpxError
from tests.support.commands import Answer, here
from tests.support.composed import requests_of
from tests.support.stores import RESAMPLES, Family, build_member, write_jsonl
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five runs, and a cell that failed."""
    filled = write_store(tmp_path_factory.mktemp("cli") / "store", Truth(), seed=1, n_documents=8, n_tokens=20)
    failure = {"cell_key": "f" * 16, "family": "mine", "size": "xl", "dataset": "file", "error": "burnt"}
    filled.write_record("failures", "f" * 16, failure | {"at": "2026-11-20T12:00:00.000000"})
    return filled.root


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    """The whole of stdout as a JSON array of objects."""
    rows = json.loads(answer.stdout)
    assert isinstance(rows, list)
    assert all(isinstance(row, dict) for row in rows)
    return rows


def cells_of(answer: Answer) -> list[dict[str, str]]:
    """The whole of stdout as CSV."""
    return list(csv.DictReader(io.StringIO(answer.stdout)))


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
    assert {row["status"] for row in rows_of(answer)} == {"too_few_sizes"}
    assert len(re.findall(r"tokens at [\d,]+ tokens/s", answer.stderr)) == 1
    assert "alpha" not in answer.stderr
    written = here(*words[:-2], "--output", tmp_path / "laws.json", cwd=cwd, check=0)
    assert (written.stdout, json.loads((tmp_path / "laws.json").read_text())) == ("", rows_of(answer))


def test_status_prints_runs_and_failures_in_every_format(store: Path, cwd: Path) -> None:
    as_table, as_json, as_csv = (
        here("status", "--store", store, "--format", form, cwd=cwd, check=0) for form in ("table", "json", "csv")
    )
    for rows in (rows_of(as_json), cells_of(as_csv)):
        assert sorted(row["size"] for row in rows) == sorted(["xl", *map(str, Truth.S)])
        assert [row["error"] for row in rows if row["size"] == "xl"] == ["burnt"]
    assert "mine" in as_table.stdout
    assert "burnt" in as_table.stdout


def test_show_prints_where_a_run_and_a_fit_come_from(store: Path, cwd: Path) -> None:
    words = ("fit", "laws=[cross_entropy]", RESAMPLES, "--details", "--store", store)
    as_json = here(*words, "--format", "json", cwd=cwd, check=0)
    as_csv = here(*words, "--format", "csv", cwd=cwd, check=0)
    (row,), (line,) = rows_of(as_json), cells_of(as_csv)
    assert as_json.stderr == as_csv.stderr == ""
    assert set(row) == set(line)
    assert (line["fit_id"], line["alpha"], line["k"]) == (row["fit_id"], repr(row["alpha"]), "")
    fit, run = (
        json.loads(here("show", name, "--store", store, cwd=cwd, check=0).stdout)
        for name in (row["fit_id"], row["run_ids"][0])
    )
    fit, run = (found[0] if isinstance(found, list) else found for found in (fit, run))
    assert (fit["law"], fit["run_ids"]) == ("cross_entropy", row["run_ids"])
    assert (run["run_id"], run["dataset"]) == (row["run_ids"][0], "synthetic")


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
    """Found before anything is loaded, and when its tokenizer is."""
    text = ("dataset=file", f"dataset.path={family.text}", "--store", tmp_path / "store")
    for name, file, says in (("bare", None, r"bare.*config\.json"), ("pickled", "pytorch_model.bin", "safetensors")):
        (tmp_path / name).mkdir()
        if file is not None:
            (tmp_path / name / file).write_bytes(b"")
            (tmp_path / name / "config.json").write_text('{"model_type": "gpt2"}')
        assert_told(here("model=hub", f"model.id={tmp_path / name}", *text, cwd=cwd), says)
    folder = build_member(tmp_path / "large", "xs")
    config = json.loads((folder / "tokenizer.json").read_text())
    first = 1 + max(token["id"] for token in config["added_tokens"])
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    config["added_tokens"] += [{"id": first + n, "content": f"<far {n}>"} | plain for n in range(40)]
    (folder / "tokenizer.json").write_text(json.dumps(config))
    far = ("dataset=file", f"dataset.path={write_jsonl(tmp_path / 'far.jsonl', 'One is <far 39> off.')}", *text[2:])
    assert_told(here("model=hub", f"model.id={folder}", *far, cwd=cwd), "contains '<far 39>'.*large has 320 rows")


def test_a_text_that_cannot_be_read_is_named_with_the_reason(family: Family, cwd: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"text": "one"}\n{"text": "t\n')
    short = write_jsonl(tmp_path / "short.jsonl", "a", "b", "c")
    for words, says in (
        (["dataset.path=/nosuch.jsonl"], r"/nosuch\.jsonl.*path"),
        ([f"dataset.path={broken}"], r"broken\.jsonl"),
        ([f"dataset.path={family.text}", "dataset.fields=[body]"], "body.*text"),
        ([f"dataset.path={short}"], "nothing to score"),
    ):
        given = [word for word in family.words("xs") if not word.startswith("dataset.path")]
        assert_told(here("measure", *given, *words, "--store", tmp_path / "store", cwd=cwd), says)


def test_an_absent_accelerator_is_a_wrong_request(family: Family, cwd: Path, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    answer = here("measure", *family.words("xs"), "device=cuda", "--store", tmp_path / "store", cwd=cwd)
    assert_told(answer, "device=cuda.*device=cpu")
