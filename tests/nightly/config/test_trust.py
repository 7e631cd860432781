"""Whole commands refuse each kind of file and override that names code; Hydra refuses any unknown key."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.cli.registry import asking
from rbpx.config.hydra.compose import compose
from rbpx.config.request import KEYS as REQUEST_KEYS
from rbpx.errors import RbpxError
from tests.support.commands import Answer, here


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
    "a handler": "# @package _global_\nhydra: {job_logging: {handlers: {a: {class: a.File, filename: MARK}}}}",
    "a factory": "# @package _global_\nhydra: {hydra_logging: {filters: {a: {(): open, file: MARK, mode: w}}}}",
    "a launcher": "# @package _global_\nhydra: {launcher: {_target_: os.getcwd}}",
    "a shell": "# @package _global_\nhydra: {launcher: {setup: [touch MARK]}}",
    "an environment": "# @package _global_\nhydra: {job: {env_set: {LD_PRELOAD: MARK}}}",
    "a moved file": "defaults: ['/model@hydra.callbacks: ladder', _self_]\nname: x",
    "a search path": "# @package _global_\nhydra: {searchpath: ['pkg://os']}",
    "a target of a dataset": "name: x\nwhere: {_target_: os.getcwd}",
    "the environment": "name: ${oc.env:HOME}\npath: x",
    "a resolver by parts": "name: ${oc.${where.a}:HOME}\nwhere: {a: env}",
}


@pytest.mark.parametrize("name", NAMES_CODE)
def test_a_command_refuses_a_file_that_names_code_and_runs_none(name: str, tmp_path: Path, cwd: Path) -> None:
    mark = tmp_path / "mark"
    answer = plan(stranger(tmp_path, NAMES_CODE[name].replace("MARK", str(mark))), cwd)
    refused(answer, "mine.yaml", "--trust-config")
    assert not mark.exists()


def test_a_target_that_is_no_plugin_is_one_line_for_those_who_trust(tmp_path: Path, cwd: Path) -> None:
    words = ("status", "-m", "hydra.launcher._target_=os.getcwd", "--trust-config", "--store", tmp_path)
    refused(here(*words, cwd=cwd), "os.getcwd", "plugin")


KEYS = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=10)


SIGNS, GROUPS = st.sampled_from(["", "+", "++"]), st.sampled_from(["", "model.", "dataset.", "protocol."])


@settings(max_examples=1_000, deadline=None)
@given(KEYS, SIGNS, GROUPS)
def test_any_unknown_key_is_refused_however_it_is_written(key: str, sign: str, group: str) -> None:
    from rbpx.config.model.family import ModelConfig
    from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig

    known = {*REQUEST_KEYS, "experiment"}
    known |= {name for config in (ModelConfig, DatasetConfig, ProtocolConfig) for name in config.__dataclass_fields__}
    if key not in known:
        with pytest.raises(RbpxError) as caught:
            compose(asking("measure"), [f"{sign}{group}{key}=1"])
        assert "\n" not in str(caught.value)
