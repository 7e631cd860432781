"""Configuration of strangers: what names code is refused in one line, what is written in few lines stays small."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.cli.registry import asking
from rbpx.config.hydra.compose import compose
from rbpx.config.hydra.trust import check_overrides_trusted, load_trusted
from rbpx.config.yaml_files import check_yaml, load_yaml
from rbpx.errors import RbpxError
from tests.support.commands import Answer, here
from tests.support.places import CONF, EXPERIMENTS


def stranger(folder: Path, content: str, name: str = "dataset/mine.yaml") -> Path:
    path = folder / "theirs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return folder / "theirs"


def plan(folder: Path, cwd: Path, *words: str) -> Answer:
    store = folder.parent / "store"
    return here("plan", "model=ladder", "dataset=mine", "--config-dir", folder, *words, "--store", store, cwd=cwd)


def refused(answer: Answer, *says: str) -> None:
    assert answer.returncode == 2, answer.stderr
    (line,) = answer.stderr.splitlines()
    assert [words for words in says if words not in line] == [], line


NAMES_CODE = {
    "a callback": "# @package _global_\nhydra: {callbacks: {a: {_target_: builtins.open, file: MARK, mode: w}}}",
    "a handler": "# @package _global_\nhydra: {job_logging: {handlers: {a: {class: a.File, filename: MARK}}}}",
    "a factory": "# @package _global_\nhydra: {hydra_logging: {filters: {a: {(): open, file: MARK, mode: w}}}}",
    "a launcher": "# @package _global_\nhydra: {launcher: {_target_: os.getcwd}}",
    "a shell": "# @package _global_\nhydra: {launcher: {setup: [touch MARK]}}",
    "an environment": "# @package _global_\nhydra: {job: {env_set: {LD_PRELOAD: MARK}}}",
    "another place": "# @package hydra.callbacks\na: {name: x}",
    "a place by its name": "# @package _name_\nname: x",
    "a moved file": "defaults: ['/model@hydra.callbacks: ladder', _self_]\nname: x",
    "a search path": "# @package _global_\nhydra: {searchpath: ['pkg://os']}",
    "a target of a dataset": "name: x\nwhere: {_target_: os.getcwd}",
    "the environment": "name: ${oc.env:HOME}\npath: x",
    "a resolver by parts": "name: ${oc.${where.a}:HOME}\nwhere: {a: env}",
}


PLACED = ("another place", "a place by its name")  # what is wrong with them is where Hydra would put them


def test_a_file_that_names_code_is_refused_as_it_is_read(tmp_path: Path) -> None:
    for name in NAMES_CODE.keys() - set(PLACED):
        folder = stranger(tmp_path, NAMES_CODE[name].replace("MARK", str(tmp_path / "mark")))
        with pytest.raises(RbpxError, match=r"mine\.yaml.*--trust-config"):
            load_trusted(folder / "dataset" / "mine.yaml", trusts=False)


def test_a_command_refuses_a_file_that_names_code_and_runs_none(tmp_path: Path, cwd: Path) -> None:
    mark = tmp_path / "mark"
    for name in ("a callback", *PLACED):
        answer = plan(stranger(tmp_path, NAMES_CODE[name].replace("MARK", str(mark))), cwd)
        refused(answer, "mine.yaml", "--trust-config")
    assert not mark.exists()


def test_a_file_for_a_group_of_hydra_and_an_override_that_names_code_stop_a_command(tmp_path: Path, cwd: Path) -> None:
    folder = stranger(tmp_path, "version: 1\n", "hydra/job_logging/mine.yaml")
    answer = here("status", "--config-dir", folder, "hydra/job_logging=mine", "--store", tmp_path / "store", cwd=cwd)
    refused(answer, "mine.yaml configures Hydra", "--trust-config")
    refused(here("status", "hydra.launcher._target_=os.getcwd", "--store", tmp_path, cwd=cwd), "--trust-config")


def test_the_flag_allows_what_is_refused(tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "stdlib-of-mine")
    folder = stranger(tmp_path, "name: ${oc.env:MINE}\nkind: pydoc\n")
    words = ("model=ladder", "dataset=mine", "--config-dir", folder, "--cfg", "job", "--resolve", "--store", tmp_path)
    assert "name: stdlib-of-mine" in here("plan", *words, "--trust-config", cwd=cwd, check=0).stdout
    refused(here("plan", *words, cwd=cwd), "--trust-config")


@pytest.mark.parametrize(
    "override",
    [
        "hydra.launcher._target_=os.getcwd",
        "+hydra.callbacks.a._target_=os.getcwd",
        "+hydra.callbacks={a: {_target_: os.getcwd}}",
        "++hydra.callbacks.a.b=1",
        "hydra.job_logging.handlers.a.class=os.getcwd",
        "hydra.hydra_logging={version: 1}",
        "hydra={callbacks: {a: 1}}",
        "+dataset@hydra.callbacks=mine",
        "hydra.searchpath=[pkg://os]",
    ],
)
def test_an_override_that_names_code_is_refused(override: str) -> None:
    with pytest.raises(RbpxError, match="--trust-config"):
        check_overrides_trusted([override])


@pytest.mark.parametrize(
    "override", ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.searchpath=[file://a]"]
)
def test_an_override_that_gives_values_is_not(override: str) -> None:
    check_overrides_trusted([override])


LAUGHS = "a0: &a0 [x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 4)}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (LAUGHS, ["line 8", "aliases stand for more than 50,000 values"]),
        ("where: &a {b: *a}", ["line 1", "*a stands for nothing before it, or for itself"]),
        ("where: " + "[" * 5000 + "]" * 5000, ["nested deeper than 40"]),
        ("where: " + "{a: " * 5000 + "}" * 5000, ["nested deeper than 40"]),
        ("name: !!python/object/apply:os.getcwd []", ["line 1", "the tag !!python/object/apply:os.getcwd"]),
        ("name: !mine a", ["the tag !mine"]),
        ("name: 'a", ["cannot be read as YAML"]),
        ("name: " + "a" * 300_000, ["longer than 200,000 characters"]),
        ("- a\n- b", ["a mapping of keys to values is expected"]),
        ("5", ["a mapping of keys to values is expected"]),
        ("a: 1\na: 2", ["cannot be read as YAML", "duplicate key a"]),
        ("name: a\nwhere: {b: [" + "'${name}', " * 9 + "]}", ["refers to other keys 9 times"]),
    ],
    ids=["laughs", "itself", "lists", "mappings", "python", "tag", "quote", "long", "list", "number", "twice", "keys"],
)
def test_a_file_beyond_a_bound_is_refused_at_once_whoever_wrote_it(
    content: str, says: list[str], tmp_path: Path
) -> None:
    path = stranger(tmp_path, content) / "dataset" / "mine.yaml"
    began = time.process_time()
    for trusts in (False, True):
        if trusts and "refers" in says[0]:
            continue  # those who trust a file may refer as often as they like
        with pytest.raises(RbpxError) as caught:
            load_trusted(path, trusts=trusts)
        assert [words for words in ("mine.yaml", *says) if words not in str(caught.value)] == []
        assert "\n" not in str(caught.value)
    assert time.process_time() - began < 3


def test_a_command_refuses_a_file_beyond_a_bound_at_once(tmp_path: Path, cwd: Path) -> None:
    began = time.process_time()
    says = ("mine.yaml", "aliases stand for more than 50,000 values")
    refused(plan(stranger(tmp_path, LAUGHS), cwd, "--trust-config"), *says)
    assert time.process_time() - began < 3


def test_every_file_of_ours_is_within_bounds_and_every_study_names_no_code() -> None:
    for path in sorted(CONF.rglob("*.yaml")):
        load_yaml(path)
    for path in sorted(EXPERIMENTS.glob("*.yaml")):
        load_trusted(path, trusts=False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["C"]), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, max_size=4))
def test_plain_values_pass_the_bounds_as_they_are(values: dict[str, object]) -> None:
    import yaml

    check_yaml(yaml.safe_dump(values), "a.yaml")


def test_a_key_that_is_added_is_refused_as_one_that_is_changed() -> None:
    for word, says in (("+foo=1", "foo"), ("++limt=1", "did you mean limit"), ("+model.foo=1", r"model\.foo")):
        with pytest.raises(RbpxError, match=f"plan has no key.*{says}") as problem:
            compose(asking("plan"), ["model=ladder", "dataset=pydoc", word])
        assert "\n" not in str(problem.value)


def test_without_hydra_a_command_says_what_to_install(tmp_path: Path, cwd: Path) -> None:
    code = "import sys; sys.modules['hydra'] = None; from rbpx.__main__ import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "status", "--store", str(tmp_path)]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "the package hydra is not installed" in line
    assert "pip install rbpx" in line
