"""The command line: what it teaches, what it prints where, and one line for every wrong request."""

import csv
import io
import json
import re
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from rbpx.cli.registry import asking, names
from rbpx.config.request import KEYS
from tests.support.commands import Answer, here, rbpx, start
from tests.support.stores import RESAMPLES, Family, Measured, build_member, write_jsonl

HEAVY = ("torch", "transformers", "duckdb", "scipy", "lmfit", "hydra")


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    """The whole of stdout as a JSON array of objects."""
    rows = json.loads(answer.stdout)
    assert isinstance(rows, list)
    assert all(isinstance(row, dict) for row in rows)
    return rows


# ------------------------------------------------------------------------------------------------------ what it teaches


def test_version_is_that_of_the_installed_package(cwd: Path) -> None:
    assert rbpx("--version", cwd=cwd, check=0).stdout == f"rbpx {version('rbpx')}\n"


@pytest.mark.parametrize("verb", [None, *names()])
def test_help_teaches_at_once_without_loading_anything_heavy(verb: str | None, cwd: Path) -> None:
    process = start(*([verb] if verb else []), "--help", cwd=cwd, python=("-X", "importtime"))
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    imported = {line.split("|")[-1].strip().split(".")[0] for line in stderr.splitlines() if "|" in line}
    assert "rbpx" in imported  # the list of imports is read rightly
    assert imported.isdisjoint(HEAVY)
    if verb is None:
        assert all(re.search(rf"^ +{known} ", stdout, re.MULTILINE) for known in names())
    else:
        assert f"python -m rbpx {verb}" in stdout or (verb == "run" and "python -m rbpx model=" in stdout)


@pytest.mark.parametrize("verb", names())
def test_the_page_of_a_verb_has_a_line_for_each_of_its_keys_alone(verb: str) -> None:
    from rbpx.cli.help import help_text

    page = help_text(verb)
    assert len(page.splitlines()) <= 88
    assert max(map(len, page.splitlines())) <= 120
    asked = asking(verb)
    if asked.kind is None:
        explained = re.findall(r"^  ([A-Za-z_.]+)=", page.partition("\nkeys\n")[2], re.MULTILINE)
        assert set(explained) == {name for name in asked.keys if "." in name or KEYS[name].help}
        assert len(explained) == len(set(explained))


@pytest.mark.parametrize(("verb", "form"), [("sql", "tex"), ("status", "html"), ("fit", "tex"), ("plan", "svg")])
def test_a_page_names_the_formats_that_its_verb_has(verb: str, form: str, cwd: Path) -> None:
    from rbpx.cli.help import help_text

    page = help_text(verb)
    (line,) = re.findall(r"^  format=.*$", page, re.MULTILINE)
    words = ["FROM runs"] if verb == "sql" else []
    refused = "prints table, csv or json" in " ".join(here(verb, *words, "--format", form, cwd=cwd).stderr.split())
    assert bool(re.search(rf"\b{form}\b", line)) is not refused


def test_the_page_of_all_verbs_explains_every_key() -> None:
    from rbpx.cli.help import help_text

    page = help_text(None)
    known = {name for verb in names() if asking(verb).kind is None for name in asking(verb).keys}
    assert [name for name in known if not re.search(rf"\b{re.escape(name)}=", page)] == []


def examples() -> list[str]:
    """The command lines that the help of each verb shows."""
    from rbpx.cli.help import help_text

    lines = [line.strip() for verb in names() for line in help_text(verb).splitlines()]
    found = [line for line in lines if line.startswith("python -m rbpx") and "..." not in line and " VERB " not in line]
    assert len(found) >= len(names())
    return sorted(set(found))


@pytest.mark.parametrize("example", examples())
def test_each_example_of_the_help_is_a_right_request(example: str, cwd: Path) -> None:
    words = [word for word in shlex.split(example)[3:] if word != "-m"]
    if "-m" in shlex.split(example)[3:]:  # Hydra shows the configuration of one job only
        words = [re.sub(r"=([^,\[]+),.*", r"=\1", word) for word in words]
    answer = here(*words, "--cfg", "job", cwd=cwd, check=0)
    assert re.search("^(store: .*|size: .*|{})$", answer.stdout, re.MULTILINE)
    assert answer.stderr == ""


def test_cfg_prints_the_configuration_and_measures_nothing(cwd: Path, tmp_path: Path) -> None:
    answer = rbpx("limit=7", "size=[3k]", "--store", tmp_path / "store", "--cfg", "job", cwd=cwd, check=0)
    assert re.search(r"^limit: 7$", answer.stdout, re.MULTILINE)
    assert f"store: {tmp_path / 'store'}" in answer.stdout
    assert "family: ladder" in answer.stdout
    assert answer.stderr == ""
    assert not (tmp_path / "store").exists()


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
    "key under train": ("train tokns=3", ["tokns", "tokens"]),
    "verb": ("mesure dataset=pydoc", ["mesure", "measure"]),
    "flag": ("--frmat json", ["--frmat", "--help"]),
    "law": ("fit laws=[rbp,nosuch] --store @store", ["nosuch", "cross_entropy"]),
    "tie rule": ("fit ties=nosuch --store @store", ["nosuch", "pessimistic"]),
    "dtype": ("dtype=int3", ["int3", "bfloat16"]),
    "format": ("fit --format xml --store @store", ["xml", "json"]),
    "id": ("show nosuch --store @store", ["nosuch", "status"]),
    "action": ("store tidy --store @store", ["tidy", "rebuild"]),
    "kind of configuration": ("--cfg bogus", ["bogus", "job"]),
    "folder of configurations": ("--config-dir /nosuch/folder", ["/nosuch/folder", "is not a folder"]),
}
MALFORMED = {
    "limit that is a word": ("limit=abc", ["limit", "abc", "(?i)integer|whole number"]),
    "limit of zero": ("limit=0", ["limit=0", "from 1"]),
    "k of zero": ("fit k=0 --store @store", ["k=0", "from 1"]),
    "k that is a word": ("fit k=abc --store @store", ["k=abc", "log"]),
    "k beyond the vocabulary": ("fit k=[320,1000] --store @store", ["320", "smaller"]),
    "size read as a number": ("dataset=pydoc size=1e3", ["size=1000.0", "quote"]),
    "revision read as a number": ("model.revision=1e5", [r"model\.revision", "quote"]),
    "list of families": ("model=[ladder,hub] dataset=pydoc", ["model", "-m model=ladder,hub"]),
    "list of datasets": ("@tiny dataset=[pydoc,stdlib]", ["dataset", "-m dataset=pydoc,stdlib"]),
    "values without a sweep": ("model=ladder,hub", ["model", "-m model="]),
    "flag without its value": ("fit --store @store --format", ["--format", "json"]),
    "store flag without its value": ("fit --store", ["--store", "PATH|DIR"]),
    "word where none belongs": ("fit limit", ["limit", "key=value"]),
    "two ways of running": ("-m limit=3,5 --cfg job", ["--cfg"]),
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
    "same model twice": ("model=hub model.id=[@xs,@xs] model.family=a dataset=pydoc", ["twice"]),
    "number for an id": ("model=hub model.id=12 dataset=pydoc", [r"model\.id=12", "quote"]),
    "pickled weights": ("model=hub model.id=@pickled dataset=pydoc", ["pickled", "safetensors"]),
    "configuration cut short": ("model=hub model.id=@cut dataset=pydoc", ["cut", r"config\.json"]),
}
TEXTS = {
    "file that is missing": ("@tiny dataset=file dataset.path=/nosuch.jsonl", [r"/nosuch\.jsonl", "path"]),
    "path left out": ("@tiny dataset=file", [r"dataset\.path"]),
    "file without documents": ("@tiny dataset=file dataset.path=@empty", [r"empty\.jsonl", "document"]),
    "field that no row has": ("@tiny dataset=file dataset.path=@text dataset.fields=[body]", ["body", "text"]),
    "fields that are no list": ("@tiny dataset=file dataset.path=@text dataset.fields=text", ["fields", "list|List"]),
    "file that is not what its name says": ("@tiny dataset=file dataset.path=@broken", [r"broken\.jsonl"]),
    "comma in a path": ("@tiny dataset=file dataset.path=/x/a,b.jsonl", [r"dataset\.path", "quote|\"'"]),
    "bracket in a path": ("@tiny dataset=file dataset.path=/x/a(b.jsonl", [r"a\(b", "quote|\"'"]),
}
QUERIES = {
    "left out": ([], ["query", "SELECT"]),
    "misspelt": (["SELEC 1"], ["SQL", "SELEC"]),
    "of an unknown relation": (["SELECT * FROM tokns"], ["tokns", "tokens"]),
    "of an unknown tie rule": (["SELECT * FROM rbp_at(1, 'nosuch')"], ["nosuch", "pessimistic"]),
    "that writes": (["DELETE FROM runs"], ["SELECT", "DELETE"]),
    "that writes a file": (["COPY runs TO 'runs.csv'"], ["SELECT", "COPY"]),
    "made of two": (["SELECT 1; SELECT 2"], ["one SELECT"]),
    "that reads a file": (["SELECT * FROM read_csv('/etc/passwd')"], ["read_csv|/etc/passwd|disabled"]),
    "in two words": (["SELECT", "1"], ["quotes"]),
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


@pytest.mark.parametrize(("words", "names"), QUERIES.values(), ids=QUERIES)
def test_a_wrong_query_is_one_line_that_says_what_to_do(
    words: list[str], names: list[str], measured: Measured, cwd: Path
) -> None:
    assert_one_line(here("sql", *words, "--store", measured.store, cwd=cwd), names)


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
    assert not list((tmp_path / "store").glob("runs/*"))


def broken_member(name: str, place: Path) -> Path:
    """A model that looks right until it is loaded."""
    folder = build_member(place / name, "xs")
    if name == "tokenizer-too-large":
        config = json.loads((folder / "tokenizer.json").read_text())
        first = 1 + max(token["id"] for token in config["added_tokens"])
        plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        config["added_tokens"] += [{"id": first + n, "content": f"<far {n}>"} | plain for n in range(40)]
        (folder / "tokenizer.json").write_text(json.dumps(config))
    elif name == "tokenizer-cut":
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
        ("tokenizer-too-large", "does not fit.*320 rows"),
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


@pytest.mark.parametrize("name", ["one.jsonl", "blank.txt"])
def test_a_text_with_nothing_to_predict_is_a_wrong_request(
    name: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    text = tmp_path / name
    if name == "one.jsonl":
        write_jsonl(text, "a", "b", "c")
    else:
        text.write_text("")
    answer = here(*family.words("xs", text=text), "--store", tmp_path / "store", cwd=cwd)
    assert_told(answer, "nothing to score|is empty")


def test_an_absent_accelerator_is_a_wrong_request(family: Family, cwd: Path, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    answer = here(*family.words("xs"), "device=cuda", "--store", tmp_path / "store", cwd=cwd)
    assert_one_line(answer, ["device=cuda", "device=cpu"])


# -------------------------------------------------------------------------------------------------- what goes where


def test_laws_go_to_stdout_and_progress_to_stderr(measured: Measured) -> None:
    assert "cross-entropy" in measured.answer.stdout
    assert "tokens/s" not in measured.answer.stdout
    assert len(re.findall(r"tokens at [\d,]+ tokens/s", measured.answer.stderr)) == 4
    assert "alpha" not in measured.answer.stderr


@pytest.mark.parametrize(
    "words",
    [["-m", "limit=3,5", "size=3k"], ["limit=3,5", "-m", "size=3k"], ["limit=3,5", "size=3k", "--multirun"]],
    ids=str,
)
def test_flags_may_stand_between_the_overrides(words: list[str], cwd: Path, tmp_path: Path) -> None:
    """Each job comes as far as the text, which is missing."""
    missing = ["dataset=file", "dataset.path=/nosuch.jsonl", "--store", str(tmp_path / "store")]
    answer = here(*words, *missing, cwd=cwd)
    assert_one_line(answer, [r"/nosuch\.jsonl"])
    shown = here("limit=7", "--cfg", "job", "--store", tmp_path / "store", "seed=3", cwd=cwd, check=0).stdout
    assert {"limit: 7", "seed: 3", f"store: {tmp_path / 'store'}"} <= set(shown.splitlines())


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "created_at"} for row in rows]


def test_flags_mean_the_same_before_and_after_the_verb_and_as_overrides(own_store: Path, cwd: Path) -> None:
    said = [
        rows_of(here(*words, RESAMPLES, cwd=cwd, check=0))
        for words in (
            ["--format", "json", "--store", own_store, "fit"],
            ["fit", f"--store={own_store}", "--format=json"],
            ["fit", f"store={own_store}", "format=json"],
        )
    ]
    assert len(said[0]) >= 7
    assert without_time(said[0]) == without_time(said[1]) == without_time(said[2])


def test_json_and_csv_of_a_fit_hold_the_same_and_nothing_else_is_printed(own_store: Path, cwd: Path) -> None:
    as_json = here("fit", RESAMPLES, "--store", own_store, "--format", "json", cwd=cwd, check=0)
    as_csv = here("fit", RESAMPLES, "--store", own_store, "--format", "csv", cwd=cwd, check=0)
    rows, lines = rows_of(as_json), list(csv.DictReader(io.StringIO(as_csv.stdout)))
    assert as_json.stderr == as_csv.stderr == ""
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert set(row) == set(line)
        assert line["fit_id"] == row["fit_id"]
        assert line["alpha"] == ("" if row["alpha"] is None else repr(row["alpha"]))


def test_a_run_prints_json_alone_while_it_measures(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = [*family.words("xs"), RESAMPLES, "--store", tmp_path / "store", "--format", "json"]
    answer = here(*words, cwd=cwd, check=0)
    assert {row["status"] for row in rows_of(answer)} == {"too_few_sizes"}
    assert "tokens/s" in answer.stderr


@pytest.mark.parametrize("form", ["json", "csv"])
def test_status_prints_runs_and_failures_in_every_format(form: str, own_store: Path, cwd: Path) -> None:
    failure = {"cell_key": "f" * 16, "family": "mine", "size": "xl", "dataset": "file", "error": "burnt", "at": None}
    (own_store / "failures").mkdir()
    (own_store / "failures" / f"{'f' * 16}.json").write_text(json.dumps(failure | {"at": "2026-11-20T12:00:00.000000"}))
    answer = here("status", "--store", own_store, "--format", form, cwd=cwd, check=0)
    rows = rows_of(answer) if form == "json" else list(csv.DictReader(io.StringIO(answer.stdout)))
    assert sorted(row["size"] for row in rows) == ["l", "m", "s", "xl", "xs"]
    assert [row["error"] for row in rows if row["size"] == "xl"] == ["burnt"]
    shown = here("status", "--store", own_store, cwd=cwd, check=0).stdout
    assert "mine" in shown
    assert "burnt" in shown


def test_sql_answers_as_a_table_as_csv_and_as_json(measured: Measured, cwd: Path) -> None:
    query = "SELECT size, n_tokens, NULL AS nothing FROM runs ORDER BY non_embedding_params"
    words = ["sql", query, "--store", measured.store]
    sizes = ["xs", "s", "m", "l"]
    rows = rows_of(here(*words, "--format", "json", cwd=cwd, check=0))
    assert [row["size"] for row in rows] == sizes
    assert all(row["nothing"] is None for row in rows)
    lines = list(csv.DictReader(io.StringIO(here(*words, "--format", "csv", cwd=cwd, check=0).stdout)))
    assert [line["size"] for line in lines] == sizes
    assert [int(line["n_tokens"]) for line in lines] == [row["n_tokens"] for row in rows]
    table = here(*words, cwd=cwd, check=0).stdout
    assert re.search(rf"xs +{rows[0]['n_tokens']}\b", table)


def test_an_answer_without_rows_still_is_json_and_csv(measured: Measured, cwd: Path) -> None:
    words = ["sql", "SELECT size FROM runs WHERE size = 'nosuch'", "--store", measured.store]
    assert rows_of(here(*words, "--format", "json", cwd=cwd, check=0)) == []
    assert here(*words, "--format", "csv", cwd=cwd, check=0).stdout == "size\n"


@pytest.mark.parametrize("form", ["json", "csv"])
def test_output_writes_the_answer_to_a_file_and_prints_nothing(
    form: str, measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    output = tmp_path / f"answer.{form}"
    words = ["sql", "SELECT size FROM runs ORDER BY size", "--store", measured.store]
    answer = here(*words, "--output", output, cwd=cwd, check=0)
    assert answer.stdout == ""
    text = output.read_text()
    rows = json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))
    assert [row["size"] for row in rows] == ["l", "m", "s", "xs"]


def test_an_output_that_cannot_be_written_is_a_wrong_request(measured: Measured, cwd: Path) -> None:
    words = ["sql", "SELECT 1 AS one", "--store", measured.store, "--output", "/nosuch/folder/answer.csv"]
    assert_one_line(here(*words, cwd=cwd), ["/nosuch/folder/answer.csv", "name another"])


def test_show_prints_where_a_run_and_a_fit_come_from(measured: Measured, cwd: Path) -> None:
    words = ["--store", measured.store, "--format", "json"]
    query = "SELECT fit_id, run_ids[1] AS run_id FROM fits WHERE law = 'cross_entropy'"
    (row,) = rows_of(here("sql", query, *words, cwd=cwd, check=0))
    fit, run = (
        json.loads(here("show", row[name], "--store", measured.store, cwd=cwd, check=0).stdout)
        for name in ("fit_id", "run_id")
    )
    fit, run = (found[0] if isinstance(found, list) else found for found in (fit, run))
    assert fit["law"] == "cross_entropy"
    assert row["run_id"] in fit["run_ids"]
    assert run["run_id"] == row["run_id"]
    assert run["versions"]["torch"]
    assert run["config"]["dataset"]["path"] == str(measured.family.text)


def test_the_environment_names_the_store_where_the_command_does_not(measured: Measured, cwd: Path) -> None:
    answer = here(
        "sql", "SELECT count(*) AS n FROM runs", "--format", "json",
        cwd=cwd, env={"RBPX_STORE": str(measured.store)}, check=0,
    )  # fmt: skip
    assert rows_of(answer) == [{"n": 4}]
