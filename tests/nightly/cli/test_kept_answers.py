"""Answers that are kept in the store: printed again to the last bit, computed anew when what they depend on changes."""

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rbpx.analyses import told
from rbpx.config.overrides import what_was_typed
from rbpx.files.digest import read_sealed, write_sealed
from tests.support.commands import command_environment, here, rbpx, start
from tests.support.places import PROJECT
from tests.support.stores import RESAMPLES, Measured

LAWS = ("laws=[rbp]", "k=[1,10]")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that were computed, not found."""
    names: list[str] = []
    answer = told.answer

    def counting(name: str, *args: object, **options: object) -> object:
        names.append(name)
        return answer(name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(told, "answer", counting)
    return names


@pytest.fixture
def store(own_store: Path) -> Path:
    """A store without kept answers."""
    shutil.rmtree(own_store / "answers")
    return own_store


def ask(store: Path, verb: str, *words: str, **environment: str) -> tuple[str, str]:
    line = [verb, *(LAWS if verb == "fit" else ()), *words, RESAMPLES, "--store", str(store)]
    environment = {"COLUMNS": "80"} | environment
    done = here(*line, cwd=store.parent, env=environment, check=0, writes="--output" in words)
    return done.stdout, done.stderr


def kept_file(store: Path) -> Path:
    (path,) = (store / "answers").glob("*.json")
    return path


@pytest.mark.parametrize("words", [["fit", "--format", "json"], ["emergence", "k=1"], ["predict", "S=1e6"]])
def test_the_same_asked_again_is_printed_to_the_last_bit(words: list[str], store: Path, computed: list[str]) -> None:
    first = ask(store, *words)
    assert ask(store, *words) == first
    assert computed == [words[0]]


def test_a_sweep_that_is_done_is_not_fitted_again(measured: Measured, computed: list[str]) -> None:
    words = measured.family.words()
    first = ask(measured.store, *words)
    assert ask(measured.store, *words) == first
    assert computed == ["fit"]


def test_messages_are_shown_again(store: Path, computed: list[str]) -> None:
    (store / "runs" / sorted(path.name for path in (store / "runs").iterdir())[0] / "tokens.parquet").write_bytes(
        b"no table"
    )
    first = ask(store, "fit")
    assert "is corrupt" in first[1]
    assert ask(store, "fit") == first
    assert computed == ["fit"]


def test_another_key_another_width_or_colour_is_another_question(store: Path, computed: list[str]) -> None:
    texts = [
        ask(store, "fit"),
        ask(store, "fit", "k=2"),
        ask(store, "fit", COLUMNS="160"),
        ask(store, "fit", FORCE_COLOR="1"),
        ask(store, "fit", "seed=7"),
    ]
    assert computed == ["fit"] * len(texts)
    assert len(set(texts)) == len(texts)


def test_a_run_that_comes_is_a_new_answer(measured: Measured, tmp_path: Path, computed: list[str]) -> None:
    words = measured.family.words("xs", "s", "m")
    store = tmp_path / "store"
    here(*words, RESAMPLES, "--store", store, cwd=tmp_path, check=0, writes=True)
    before, _ = ask(store, "fit")
    here("measure", *measured.family.words("l"), "--store", store, cwd=tmp_path, check=0)
    assert ask(store, "fit")[0] != before
    assert computed == ["fit", "fit", "fit"]


def without_times(printed: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+", "", printed)


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_an_answer_of_which_only_the_head_was_read_is_not_kept(form: str, store: Path) -> None:
    many = f"k={list(range(1, 41))}".replace(" ", "")  # more than a buffer holds
    line = ["fit", *LAWS, many, RESAMPLES, "--format", form, "--store", str(store)]
    process = start(*line, cwd=store.parent)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 0
    again, fresh = (rbpx(*line, *words, cwd=store.parent, check=0).stdout for words in ([], ["fresh=true"]))
    assert without_times(again) == without_times(fresh)


def of_environment(store: Path, folder: Path) -> tuple[list[str], dict[str, str], Path]:
    return list(ASKED), {"RBPX_OTHER": "1"}, folder


def of_folder(store: Path, folder: Path) -> tuple[list[str], dict[str, str], Path]:
    return list(ASKED), {}, _made(folder / "elsewhere")


def of_config(store: Path, folder: Path) -> tuple[list[str], dict[str, str], Path]:
    (folder / "own" / "dataset" / "mine.yaml").write_text("name: mine\nkind: file\npath: changed.txt\n")
    return list(ASKED), {}, folder


def of_typed(store: Path, folder: Path) -> tuple[list[str], dict[str, str], Path]:
    return [*ASKED, "seed=42"], {}, folder


def of_store(store: Path, folder: Path) -> tuple[list[str], dict[str, str], Path]:
    (store / "samples").mkdir(exist_ok=True)
    (store / "samples" / "another.json").write_text("{}")
    return list(ASKED), {}, folder


ASKED = ("fit", *LAWS, RESAMPLES, "--config-dir", "own")


def _made(folder: Path) -> Path:
    (folder / "own" / "dataset").mkdir(parents=True)
    (folder / "own" / "dataset" / "mine.yaml").write_text("name: mine\nkind: file\npath: a.txt\n")
    return folder


@pytest.mark.parametrize("change", [None, of_environment, of_folder, of_config, of_typed, of_store])
def test_what_the_meaning_of_a_line_depends_on_misses_when_it_changes(
    change: Callable[[Path, Path], tuple[list[str], dict[str, str], Path]] | None,
    store: Path,
    tmp_path: Path,
    computed: list[str],
) -> None:
    folder = _made(tmp_path / "here")

    def asked(words: list[str], environment: dict[str, str], place: Path) -> None:
        here(*words, "--store", store, cwd=place, env={"COLUMNS": "80"} | environment, check=0)

    asked(list(ASKED), {}, folder)
    asked(*([list(ASKED), {}, folder] if change is None else change(store, folder)))
    assert computed == ["fit"] * (1 if change is None else 2)


def test_the_files_that_lines_are_read_with_are_part_of_what_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contents of conf/ and experiments/, in a copy of them."""
    for name in ("conf", "experiments"):
        (tmp_path / name / "model").mkdir(parents=True)
        (tmp_path / name / "model" / "a.yaml").write_text("family: a\n")
    monkeypatch.setattr("rbpx.config.overrides.folder", lambda name: tmp_path / name)
    found = [what_was_typed("fit", (), ["k=1"])]
    for name in ("conf", "experiments"):
        (tmp_path / name / "model" / "a.yaml").write_text("family: b\n")
        found.append(what_was_typed("fit", (), ["k=1"]))
    (tmp_path / "conf" / "model" / "a.yaml").rename(tmp_path / "conf" / "model" / "c.yaml")
    found.append(what_was_typed("fit", (), ["k=1"]))
    assert len({json.dumps(each) for each in found}) == len(found) == 4


def test_keys_in_another_order_are_the_same_line_but_in_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = ["k=1", "ties=mid", "k=2"], ["ties=mid", "k=1", "k=2"]
    assert what_was_typed("fit", (), one) == what_was_typed("fit", (), other)
    assert what_was_typed("fit", (), one) != what_was_typed("fit", (), ["k=2", "ties=mid", "k=1"])
    assert what_was_typed("fit", (), ["-m", *one]) != what_was_typed("fit", (), ["-m", *other])
    assert what_was_typed("fit", (), one) == what_was_typed("fit", (), [*one, "fresh=true"])


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "k": st.sampled_from(["1", "[1,10]", "log", "[10]"]),
        "ties": st.sampled_from(["mid", "optimistic"]),
        "laws": st.sampled_from(["[rbp]", "cross_entropy", "all"]),
        "method": st.sampled_from(["ols", "[ols,weighted]"]),
        "size": st.sampled_from(["all", "[xs,s,m]"]),
        "format": st.sampled_from(["json", "csv", "table", "md"]),
        "seed": st.integers(0, 3).map(str),
    },
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=VALUES, order=st.randoms(use_true_random=False))
def test_a_line_typed_twice_is_answered_as_it_is_when_composed(
    keys: dict[str, str], order: random.Random, store: Path
) -> None:
    """Kept and composed, in any order of the keys, a line has one answer."""
    words = [f"{key}={value}" for key, value in keys.items()]
    line = ("fit", "resamples=20", "--store", store)
    first = here(*line, *words, cwd=store.parent, env={"COLUMNS": "80"}, check=0)
    order.shuffle(words)
    again = here(*line, *words, cwd=store.parent, env={"COLUMNS": "80"}, check=0)
    fresh = here(*line, *words, "fresh=true", cwd=store.parent, env={"COLUMNS": "80"}, check=0)
    assert (again.stdout, again.stderr) == (first.stdout, first.stderr)
    assert without_times(fresh.stdout) == without_times(first.stdout)


def test_fresh_computes_in_any_case(store: Path, computed: list[str]) -> None:
    first = ask(store, "fit")
    assert ask(store, "fit", "fresh=true") == first
    assert computed == ["fit", "fit"]
    assert len(list((store / "answers").iterdir())) == 1


def test_a_damaged_answer_is_not_believed(store: Path, computed: list[str]) -> None:
    first = ask(store, "fit")
    path = kept_file(store)
    path.write_text(path.read_text().replace("alpha", "alphq"))
    assert ask(store, "fit") == first
    path.write_bytes(b"\xff\x00")
    assert ask(store, "fit") == first
    assert computed == ["fit"] * 3


def test_an_answer_that_would_command_the_terminal_is_not_printed(store: Path, computed: list[str]) -> None:
    first = ask(store, "fit")
    record = read_sealed(kept_file(store))
    record["answer"]["printed"] += "\x1b]0;owned\x07"
    write_sealed(kept_file(store), record)
    assert ask(store, "fit") == first
    assert computed == ["fit", "fit"]


@pytest.mark.parametrize(
    "parts",
    [
        *({"fits": fits} for fits in ([], "x", {"fits/a.json": 5}, {"fits/a.json": [1, 2, 3]})),
        *({"answer": answer} for answer in ("x", [], None, {"messages": []}, {"printed": "x\n"})),
        *({"answer": {"printed": printed, "messages": messages}} for printed, messages in ((5, []), ("x\n", 5))),
    ],
    ids=str,
)
def test_an_answer_of_other_parts_is_not_printed_though_it_is_sealed(
    parts: dict[str, object], store: Path, computed: list[str]
) -> None:
    first = ask(store, "fit")
    write_sealed(kept_file(store), read_sealed(kept_file(store)) | parts)
    assert ask(store, "fit") == first
    assert computed == ["fit", "fit"]


def test_fits_that_are_gone_or_have_other_numbers_are_made_again(store: Path, computed: list[str]) -> None:
    rows = "SELECT count(*) AS n, max(params->>'resamples') AS b FROM fits"

    def fits() -> list[dict[str, object]]:
        done = here("sql", rows, "--format", "json", "--store", store, cwd=store.parent, check=0)
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    shutil.rmtree(store / "fits")  # of all laws
    first, _ = ask(store, "fit")
    held = fits()
    shutil.rmtree(store / "fits")
    assert ask(store, "fit")[0] == first
    assert fits() == held
    here("fit", *LAWS, "resamples=60", "--store", store, cwd=store.parent, check=0)
    assert fits() != held
    assert ask(store, "fit")[0] == first
    assert fits() == held
    assert computed == ["fit"] * 4


def test_another_question_about_the_same_laws_leaves_an_answer_as_it_is(store: Path, computed: list[str]) -> None:
    first = ask(store, "fit")
    ask(store, "predict", "S=1e6")
    assert ask(store, "fit") == first
    assert computed == ["fit", "predict"]


def test_a_copy_of_a_store_computes_its_own(store: Path, tmp_path: Path, computed: list[str]) -> None:
    first = ask(store, "fit")
    (tmp_path / "elsewhere").mkdir()
    copy = Path(shutil.copytree(store, tmp_path / "elsewhere" / "store"))
    assert ask(copy, "fit") == first
    assert computed == ["fit", "fit"]


def test_rows_for_a_file_are_computed(store: Path, tmp_path: Path, computed: list[str]) -> None:
    for name in ("a.json", "b.json"):
        ask(store, "fit", "--format", "json", "--output", str(tmp_path / name))
    assert computed == ["fit", "fit"]
    assert not (store / "answers").exists()


def test_a_page_asked_again_is_the_same_page(store: Path, tmp_path: Path) -> None:
    for name, *how in (("a.html", "fresh=true"), ("b.html",)):
        ask(store, "report", *how, "--output", str(tmp_path / name))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "vega" in (tmp_path / "b.html").read_text()


def test_the_oldest_answers_make_room(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(store, "fit")
    first = kept_file(store)
    monkeypatch.setattr("rbpx.store.answers._ROOM_BYTES", first.stat().st_size + 100)
    ask(store, "fit", "seed=7")
    assert kept_file(store) != first


def test_other_code_is_a_new_answer(store: Path, tmp_path: Path) -> None:
    """One line of the package changed, in a copy of it, as an update changes it."""
    copy = tmp_path / "code"
    shutil.copytree(PROJECT / "rbpx", copy / "rbpx", ignore=shutil.ignore_patterns("ladder", "__pycache__"))
    for name in ("conf", "experiments"):
        (copy / name).symlink_to(PROJECT / name)
    (copy / "rbpx" / "ladder").symlink_to(PROJECT / "rbpx" / "ladder")
    (tmp_path / "cwd").mkdir()

    def printed() -> str:
        words = [sys.executable, "-m", "rbpx", "units", "--store", str(store)]
        environment = command_environment({"PYTHONPATH": str(copy), "COLUMNS": "80"})
        done = subprocess.run(words, cwd=tmp_path / "cwd", env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    first = printed()
    changed = copy / "rbpx" / "analyses" / "units" / "views.py"
    line = "bits per byte"
    assert line in changed.read_text()
    changed.write_text(changed.read_text().replace(line, "bits per octet"))
    assert printed() != first
    changed.write_text(changed.read_text().replace("bits per octet", line))
    assert printed() == first


def test_an_answer_that_is_found_loads_no_library(store: Path) -> None:
    ask(store, "fit", COLUMNS="80")
    program = (
        "import sys; from rbpx.__main__ import main; "
        f"status = main(['fit', *{LAWS}, '{RESAMPLES}', '--store', {str(store)!r}]); "
        "libraries = {'pyarrow', 'duckdb', 'numpy', 'scipy', 'lmfit', 'torch', 'pandas', 'hydra', 'omegaconf'}; "
        "print(status, sorted(libraries & set(sys.modules)))"
    )
    environment = command_environment({"COLUMNS": "80"})
    words = [sys.executable, "-c", program]
    first, again = (
        subprocess.run(words, cwd=store.parent, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first.splitlines()[:-1] == again.splitlines()[:-1]
    assert again.splitlines()[-1] == "0 []"
