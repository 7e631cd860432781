"""A store that may not be read says so in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import command_environment
from tests.support.places import PROJECT

FROZEN = PROJECT / "tests" / "same_answers" / "stores" / "demo"


def test_a_folder_that_may_not_be_read_is_named_in_one_line(cwd: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(FROZEN, tmp_path / "store"))
    rights = "-dac_override,-dac_read_search"
    drop = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"] if os.geteuid() == 0 else []
    if drop and subprocess.run([*drop, "true"], capture_output=True).returncode:
        pytest.skip("root that cannot give up the right to read everything")
    (store / "runs").chmod(0)
    words = [*drop, sys.executable, "-m", "rbpx", "fit", "resamples=20", "k=10", "--store", str(store)]
    try:
        done = subprocess.run(words, cwd=cwd, env=command_environment({}), capture_output=True, text=True, timeout=120)
    finally:
        (store / "runs").chmod(0o755)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rbpx: {store / 'runs'}: Permission denied\n"
