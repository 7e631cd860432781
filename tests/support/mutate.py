"""`make mutate`: small mistakes put into the code, one at a time; do tests notice each of them?

`python -m tests.support.mutate [ROOM ...] --sample 80 --seed 0`: so many mistakes in all. First all tests run
once in a copy of the checkout, in which the place of each mistake writes down what tests come by. Then each mistake is
made in that copy and those tests run, in a process forked from one that has read the libraries. What none of them
notices is printed: it calls for a test, or for a reason why it changes nothing that is promised, which goes into
EQUIVALENT. Exits 1 where others survive. Two suites are compared on the same mistakes: `--answers FILE` keeps what one
of them notices, `--since FILE` prints what another noticed differently.
"""

import argparse
import importlib
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mistakes import PASSERS_BY, ROOMS, Mutant, marked, sampled
from tests.support.places import PROJECT, SHARED

# Why no test can notice some mistakes -> the module, and the line with the mistake in it.
_EQUIVALENT = {
    "the size of a part moves no number": (
        "ranks/definition: _CACHE_BYTES = 1 << 21",
        "ranks/definition: _GPU_BYTES = 256 << 21",
        "ranks/definition: _GPU_BYTES = 257 << 20",
        "ranks/definition: if device.type == 'cpu':",
        "ranks/tiles: _SLAB_ROWS = 253",
        "ranks/definition: _BYTES_PER_LOGIT = 5",
        "ranks/tiles: n_most = min(_SLAB_ROWS, max(1, _ALL_TILES_BYTES // ((4 + _TILE_ENTRIES) * n_threads)))",
        "ranks/tiles: n_most = min(_SLAB_ROWS, max(2, _ALL_TILES_BYTES // (4 * _TILE_ENTRIES * n_threads)))",
        "ranks/cpu_kernel: NEAR_KEPT = 257",
    ),
    "the bits of 1 are the least number above 0": ("ranks/cpu_kernel: top, absolute = (-_ABSOLUTE, i32(1))",),
    "a row is looked through once more": (
        "ranks/cpu_kernel: least, above, absolute = (i32(1), i32(0), i32(0))",
        "ranks/cpu_kernel: return (low_n <= self._own_n) & (self._own_n <= high_n) & (self._n_near_n < NEAR_KEPT)",
        "ranks/cpu_kernel: return (low_n < self._own_n) & (self._own_n <= high_n) & (self._n_near_n <= NEAR_KEPT)",
    ),
    "what is taken off is added again": ("ranks/cpu_kernel: if i32(absolute).view(f32) >= top_n[i] + _SPREAD:",),
    "a term of the seventh order, below the last bit": (
        "ranks/cpu_kernel: p = f32(0.00019895567191499997) * r + f32(0.0013981999507)",
    ),
    "many times what products move is still many times": ("ranks/tiles: _ROUNDING = 2.0 ** (-21)",),
    "one thread or several give the same": ("ranks/tiles: if len(shares) != 1:",),
    "how it lies in the file; what is read is the same": (
        "files/digest: atomic_write_text(path, json.dumps(entries, indent=1), durable=False)",
        "store/store: text = sealed(facts | {'format': FORMAT, 'files': files}, indent=2)",
    ),
    "it only waits longer": (
        "files/digest: atomic_write_text(path, json.dumps(entries, indent=0), durable=True)",
        "store/relations: with atomic_write(path, durable=True) as temporary, duckdb.connect(':memory:') as "
        "connection:",
    ),
    "each combination still has a number of its own": (
        "store/imports/identity: combined = combined * len(encoded.dictionary) - "
        "encoded.indices.to_numpy(zero_copy_only=False)",
    ),
    "both fit, one of them is packed tighter": (
        "store/imports/identity: if combined.size and combined.max() >= 2 ** 31:",
    ),
    "all that else comes there is not written as a number": (
        "files/cells: if isinstance(value, bool) and (not isinstance(value, str | int | float | Decimal)):",
    ),
    "every block ends its thread": (
        "store/cell_states: self._thread = threading.Thread(target=self._beat, name='rbpx-heartbeat', daemon=False)",
    ),
}
EQUIVALENT = {line: reason for reason, lines in _EQUIVALENT.items() for line in lines}
_LIBRARIES = ("torch", "duckdb", "pyarrow.parquet", "pyarrow.dataset", "scipy.stats", "numba", "hydra", "hypothesis")
_LIBRARIES += ("transformers", "tokenizers", "lmfit", "rich", "filelock", "accelerate", "omegaconf", "yaml")
_LEAST_S, _PATIENCE = 60.0, 4.0  # tests may compute so long, and so many times as long as without a mistake


class _Watch:
    """Runs the chosen tests alone, in their order, and notes of each how long it computed and whether it passed."""

    def __init__(self, chosen: list[str] | None) -> None:
        self.chosen = chosen
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.chosen is not None:
            by_name = {item.nodeid: item for item in items}
            items[:] = [by_name[name] for name in self.chosen if name in by_name]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        os.environ["MUTATE_TEST"], before = item.nodeid, _computed_s()
        result = yield
        self.tests[item.nodeid] = {"cpu_s": _computed_s() - before, "fixtures": getattr(item, "fixturenames", [])}
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        """What is made once for several tests stands under the fixture's name."""
        test = os.environ.get("MUTATE_TEST", "")
        if fixturedef.scope != "function":
            os.environ["MUTATE_TEST"] = f"{fixturedef.scope}:{fixturedef.argname}"
        try:
            return (yield)
        finally:
            os.environ["MUTATE_TEST"] = test

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _computed_s() -> float:
    return sum(os.times()[:4])


class Copy:
    """A copy of a checkout whose tests are run, each time in a process of its own."""

    def __init__(self, project: Path, folder: Path) -> None:
        """Copy what git knows, and what it does not ignore."""
        self.folder, self.project = folder, folder / "project"
        (folder / "passed_by").touch()
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=project, capture_output=True, check=True, text=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if (project / name).is_file():
                (self.project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(project / name, self.project / name)
        (self.project / "passers_by.py").write_text(PASSERS_BY, encoding="utf-8")
        (folder / "shared").symlink_to(SHARED)
        for name in _LIBRARIES:
            importlib.import_module(name)

    def run(
        self, words: list[str], sources: dict[Path, str], chosen: list[str] | None = None, limit_s: float | None = None,
        anew: bool = True,
    ) -> tuple[int | None, dict[str, Any], list[str]]:  # fmt: skip
        """The exit status of pytest, None where it was stopped, what it notes of each test, and which of them failed.

        Args:
            words: for pytest.
            sources: what files of the copy say meanwhile.
            chosen: the tests that are run; all that pytest collects if None.
            limit_s: of CPU time, and ten times as long by the clock.
            anew: make again what is made once a session, and what numba compiled.
        """
        before = {path: path.read_text(encoding="utf-8") for path in sources}
        base, notes = self.folder / ("anew" if anew else "base"), self.folder / "notes.json"
        notes.unlink(missing_ok=True)
        if anew:
            shutil.rmtree(base, ignore_errors=True)
        base.mkdir(exist_ok=True)
        for path, source in sources.items():
            path.write_text(source, encoding="utf-8")
        if not (process := os.fork()):
            self._test(words, _Watch(chosen), base, limit_s)
        end = time.monotonic() + 10 * (limit_s or 1e9)
        while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < end:
            time.sleep(0.05)
        os.killpg(process, signal.SIGKILL)  # what it started too
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        for path, source in before.items():
            path.write_text(source, encoding="utf-8")
        tests, failed = json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else ({}, [])
        return (None if status < 0 else status), tests, failed

    def _test(self, words: list[str], watch: _Watch, base: Path, limit_s: float | None) -> None:
        try:
            os.setpgrp()  # to be ended with all that it starts
            os.chdir(self.project)
            if limit_s is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(_computed_s() + limit_s),) * 2)
            for name in [name for name in sys.modules if name.partition(".")[0] in ("rbpx", "tests", "ext")]:
                del sys.modules[name]
            sys.path[:] = [str(self.project), *(place for place in sys.path if Path(place).resolve() != PROJECT)]
            # As one worker of several, which share what is made once a session.
            os.environ |= {"PYTEST_XDIST_WORKER": "one", "NUMBA_CACHE_DIR": str(base / "numba")}
            os.environ |= {"PYTHONPATH": str(self.project), "PYTHONDONTWRITEBYTECODE": "1"}
            os.environ["MUTATE_NOTES"] = str(self.folder / "passed_by")
            importlib.import_module("numba.core.config").CACHE_DIR = str(base / "numba")
            for stream in (1, 2):
                os.dup2(os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            plain = ["-q", "--no-header", "-W", "ignore", "-p", "no:cacheprovider", "--basetemp", str(base / "one")]
            status = pytest.main([*plain, *words], plugins=[watch])
            (self.folder / "notes.json").write_text(json.dumps([watch.tests, watch.failed]), encoding="utf-8")
            os._exit(int(status))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)


def passers_by(checkout: Copy, mutants: list[Mutant], words: list[str]) -> dict[str, Any]:
    """One run of all tests: how long each that passed computed, by which fixtures, and who came by each mistake."""
    _, tests, failed = checkout.run(words, marked(checkout.project, mutants), anew=False)
    notes = (checkout.folder / "passed_by").read_text(encoding="utf-8").splitlines()
    by: dict[str, list[str]] = {str(mutant): [] for mutant in mutants}
    for mistake, _, passer in (line.partition(" ") for line in notes):
        by[str(mutants[int(mistake)])].append(passer)
    return {"tests": {name: of for name, of in tests.items() if name not in failed}, "by": by}


def order(mutant: Mutant, known: dict[str, Any], limit_s: float) -> list[str]:
    """The tests that come by a mistake, file by file, those that take least first; then the others of these files."""
    tests, came = known["tests"], set(known["by"].get(str(mutant), ()))
    fixtures = {name.rpartition(":")[2] for name in came - set(tests)}
    near = {name for name, of in tests.items() if name in came or fixtures & set(of["fixtures"])}
    takes_s: Counter[str] = Counter()
    for name in near:
        takes_s[_file(name)] += tests[name]["cpu_s"]
    of_files = [name for name in tests if _file(name) in takes_s]
    ordered = sorted(of_files, key=lambda name: (name not in near, takes_s[_file(name)], _file(name)))
    chosen, total_s = [], 0.0
    for name in ordered:
        total_s += tests[name]["cpu_s"]
        chosen += [name] if total_s <= limit_s else []
    return chosen


def _file(test: str) -> str:
    return test.partition("::")[0]


def verdict(checkout: Copy, mutant: Mutant, known: dict[str, Any], limit_s: float) -> tuple[str, str]:
    """Whether a mistake is noticed, and the test that notices it."""
    chosen = order(mutant, known, limit_s)
    path = checkout.project / "rbpx" / f"{mutant.module}.py"
    anew = mutant.room == "kernels" or any(name.startswith("session:") for name in known["by"].get(str(mutant), ()))
    takes_s = _LEAST_S + _PATIENCE * sum(known["tests"][name]["cpu_s"] for name in chosen)
    files = list(dict.fromkeys(_file(name) for name in chosen))
    if files:
        status, _, failed = checkout.run(["-x", *files], {path: mutant.source}, chosen, takes_s, anew)
        if status in (None, 1, 2):
            how = {None: "stopped after too long", 1: "a test fails", 2: "cannot be imported"}[status]
            return "noticed", next(iter(failed), how)
        assert status == 0, f"pytest ends with {status}: {(checkout.folder / 'output').read_text()}"
    lines = (f"{mutant.module}: {line}" for line in (mutant.after, mutant.excerpts[1]))
    reason = next((EQUIVALENT[line] for line in lines if line in EQUIVALENT), None)
    return ("equivalent", reason) if reason else ("survived", f"{len(chosen)} tests in {len(files)} files")


def difference(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[str]:
    """The mistakes that one suite notices and the other does not."""
    told = {one["mistake"]: one["verdict"] for one in before}
    for one in after:
        was = told.get(one["mistake"], one["verdict"])
        if was != one["verdict"]:
            yield f"{was} -> {one['verdict']}: {one['mistake']}"


def main() -> int:
    """Make the mistakes and say which of them were noticed."""
    line = argparse.ArgumentParser()
    line.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)}; all without one")
    line.add_argument("--sample", type=int, default=80, help="how many mistakes, of each room as many")
    line.add_argument("--seed", type=int, default=0)
    line.add_argument("--tests", default="tests", help="words for pytest: `tests tests/nightly` are all that are here")
    line.add_argument("--limit", type=float, default=120.0, help="CPU seconds of tests for each mistake")
    line.add_argument("--project", type=Path, default=PROJECT, help="the checkout that is copied")
    line.add_argument("--passers", type=Path, help="JSON that keeps which tests come by; not found out again if there")
    line.add_argument("--answers", type=Path, help="JSON with the verdicts; what was noticed there is not tried again")
    line.add_argument("--since", type=Path, help="the answers of another suite, to print what differs")
    asked = line.parse_args()
    rooms = asked.rooms or list(ROOMS)
    mutants = sampled(asked.project, rooms, asked.sample // len(rooms), asked.seed)
    answers = json.loads(asked.answers.read_text()) if asked.answers and asked.answers.is_file() else []
    told = {one["mistake"]: one for one in answers}
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        checkout = Copy(asked.project.resolve(), Path(folder))
        known = json.loads(asked.passers.read_text()) if asked.passers and asked.passers.is_file() else None
        if known is None:
            known = passers_by(checkout, mutants, shlex.split(asked.tests))
            print(f"{len(known['tests'])} tests pass", flush=True)
            if asked.passers:
                asked.passers.write_text(json.dumps(known))
        for mutant in mutants:
            if told.get(str(mutant), {}).get("verdict") != "noticed":
                began = time.monotonic()
                says, by = verdict(checkout, mutant, known, asked.limit)
                told[str(mutant)] = {"room": mutant.room, "mistake": str(mutant), "verdict": says, "by": by}
                print(f"{says:10} {mutant}  ({by}; {time.monotonic() - began:.0f} s)", flush=True)
                if asked.answers:
                    asked.answers.write_text(json.dumps(list(told.values()), indent=1))
    counts = Counter((one["room"], one["verdict"]) for one in told.values())
    print(f"\n{'room':10} {'noticed':>8} {'equivalent':>11} {'survived':>9}")
    for room in dict.fromkeys(room for room, _ in counts):
        print(f"{room:10} {counts[room, 'noticed']:8} {counts[room, 'equivalent']:11} {counts[room, 'survived']:9}")
    if asked.since:
        print(*difference(json.loads(asked.since.read_text()), list(told.values())), sep="\n")
    return 1 if any(verdict == "survived" for _, verdict in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
