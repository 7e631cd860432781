"""`make soak`: minutes of kills, flipped bits, full disks, crowds, stopped copies, deletions; prints what it saw.

Not part of the tests: `python -m tests.support.soak --rounds 60 --folder FOLDER`. Exits 1 where anything was lost,
doubled, torn or silently wrong. The full disk needs the right to mount; without it that part is left out, which is
printed.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil

from rbpx.errors import RbpxError
from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.object_storage import BUCKET, Fault, storage
from tests.support.stores import assert_same_tokens

RBPX = [sys.executable, "-m", "rbpx"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "rbpx"]
LIMITS = (3, 5, 7, 9, 11, 13)
SIZES = "size=[3k,7k,25k]"
EVERYTHING = (
    "SELECT count(*) AS n, sum(doc_id) AS d, sum(position) AS p, sum(token_id) AS i, sum(greater) AS g, sum(ties) "
    "AS t, sum(logprob::DECIMAL(18, 6)) AS l, count(DISTINCT run_id) AS r, "
    "(SELECT sum(n_tokens) FROM rank_counts) AS c, (SELECT sum(greater) FROM rank_counts) AS cg, "
    "(SELECT sum(ties) FROM rank_counts) AS ct, (SELECT sum(sum_logprob::DECIMAL(18, 6)) FROM rank_counts) AS cl, "
    "(SELECT count(DISTINCT run_id) FROM rank_counts) AS cr, (SELECT sum(n_scored) FROM documents) AS s, "
    "(SELECT sum(n_bytes) + sum(n_bytes_scored) + sum(n_tokens) + sum(doc_id) FROM documents) AS b, "
    "(SELECT string_agg(run_id || source_id, ',' ORDER BY run_id, doc_id) FROM documents) AS o FROM tokens"
)
PLAIN = {key: value for key, value in os.environ.items() if key != "RBPX_STORE"} | {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}


def sweep(limits: tuple[int, ...], store: Path | str) -> list[str]:
    """The words of a sweep of many short cells."""
    grid = ["-m", "measure", "model=ladder", SIZES, "dataset=pydoc", "device=cpu"]
    return [*grid, f"limit={','.join(map(str, limits))}", "--store", str(store)]


def started(
    words: list[str], cwd: Path, launcher: list[str] = RBPX, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """A command in a process group of its own."""
    env = PLAIN | {"ACCELERATE_USE_CPU": "true"} | (env or {})
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*launcher, *words], cwd=cwd, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def finished(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command, waited for."""
    return subprocess.run([*RBPX, *words], cwd=cwd, env=PLAIN, capture_output=True, text=True, timeout=600)


def kill(process: subprocess.Popen[str]) -> str:
    """End a command and all that it started as a power cut would; what it had said."""
    whole = []
    if process.poll() is None:
        root = psutil.Process(process.pid)
        whole = [root, *root.children(recursive=True)]  # the processes of a launcher have sessions of their own
    for each in whole:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    return process.communicate()[1]


def phase(store: Path, before: set[str], said: list[str], ended: bool) -> str:
    """What a round was doing when it was killed, told by what it left."""
    left = [str(path.relative_to(store)) for path in Store(store).leftovers()] if store.is_dir() else []
    new = [name for name in left if name not in before]
    for start, what in (("runs/", "writing a run"), (".rbpx", "writing views"), ("", "writing a record")):
        if any(name.startswith(start) for name in new):
            return what
    if ended:
        return "after the end"
    return "measuring" if any("tokens/s" in text for text in said) else "starting"


class Soak:
    """The counts of a soak and what went wrong in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Work in a folder of its own."""
        self.folder, self.random, self.wrong = folder, random.Random(seed), []
        self.cwd = folder / "cwd"
        self.cwd.mkdir(parents=True)
        self.reference = folder / "undisturbed"

    def fail(self, text: str) -> None:
        """Note something that must not be."""
        self.wrong.append(text)
        print(f"WRONG: {text}", flush=True)

    def check(self, store: Path, where: str, complete: bool = False) -> None:
        """Nothing half, nothing that the undisturbed store does not have; all of it where it must be complete."""
        ours, theirs = Store(store), Store(self.reference)
        for fault in verify(ours).faults:
            self.fail(f"{where}: {fault}")
        strangers = set(ours.run_ids()) - set(theirs.run_ids())
        if strangers:
            self.fail(f"{where}: runs that the undisturbed store has not: {strangers}")
        for run_id in set(ours.run_ids()) - strangers:
            assert_same_tokens(ours.run_folder(run_id), theirs.run_folder(run_id))
        if complete:
            links = [{(cell["cell_key"], cell["run_id"]) for cell in s.records("cells")} for s in (ours, theirs)]
            if links[0] != links[1] or ours.run_ids() != theirs.run_ids():
                self.fail(f"{where}: {len(links[0])} cells and {len(ours.run_ids())} runs, expected {len(links[1])}")

    def rounds(self, n_rounds: int) -> None:
        """Kill sweeps of two processes over one store, round after round."""
        began = time.monotonic()
        done = finished(sweep(LIMITS, self.reference), self.cwd)
        assert done.returncode == 0, done.stderr
        whole_s = time.monotonic() - began
        n_cells = len(Store(self.reference).record_files("cells"))
        print(f"undisturbed: {n_cells} cells in {whole_s:.0f} s", flush=True)
        phases: Counter[str] = Counter()
        store, n_stores, n_kills = self.folder / "killed-0", 1, 0
        known: dict[str, bytes] = {}
        for number in range(n_rounds):
            left = {str(p.relative_to(store)) for p in Store(store).leftovers()} if store.is_dir() else set()
            if number % 6 == 5:
                limits = tuple(self.random.sample(LIMITS, len(LIMITS)))
                processes = [started(sweep(limits, store), self.cwd, TORCHRUN)]
            else:
                processes = [
                    started(sweep(tuple(self.random.sample(LIMITS, len(LIMITS))), store), self.cwd) for _ in range(2)
                ]
            self._wait(store, processes, whole_s)
            ended = all(process.poll() is not None for process in processes)
            n_kills += sum(process.poll() is None for process in processes)
            said = [kill(process) for process in processes]
            phases[phase(store, left, said, ended)] += 1
            for text in said:
                if "Traceback" in text and "torch/distributed" not in text:
                    self.fail(f"round {number}: {text[-600:]}")
            if store.is_dir():
                self.check(store, f"round {number}")
                now = {p.parent.name: p.read_bytes() for p in store.glob("runs/[!.]*/manifest.json")}
                for run_id, manifest in known.items():
                    if now.get(run_id) != manifest:
                        self.fail(f"round {number}: run {run_id} was there and is lost or other")
                known = now
                if len(list(Store(store).records("cells"))) == n_cells:
                    self.check(store, f"round {number}, complete", complete=True)
                    store, n_stores, known = self.folder / f"killed-{n_stores}", n_stores + 1, {}
            print(f"round {number}: {dict(phases)}, {len(known)} runs in {store.name}", flush=True)
        for process in [started(sweep(LIMITS, store), self.cwd) for _ in range(2)]:
            said = process.communicate()[1]
            if process.returncode:
                self.fail(f"the end: {said[-600:]}")
        self.check(store, "the end", complete=True)
        print(
            f"{n_rounds} rounds, {n_kills} processes or groups killed, {n_stores} stores; killed while: {dict(phases)}"
        )

    def _wait(self, store: Path, processes: list[subprocess.Popen[str]], whole_s: float) -> None:
        """Until a random moment; in most rounds until something is being written, where a kill would hurt."""
        until = time.monotonic() + self.random.uniform(0.3, 1.2) * whole_s * 2
        what = self.random.choice(
            ["runs/.*.tmp", "runs/.*.tmp", "cells/.*.tmp", ".rbpx.duckdb.*.tmp", "cells/*.json", None]
        )
        n_new, after_s = self.random.randint(1, 3), self.random.choice([0.0, 0.0, 0.001, 0.01, 0.1])
        seen: set[Path] = set(store.glob(what)) if what else set()
        target = len(seen) + n_new
        while time.monotonic() < until and any(process.poll() is None for process in processes):
            if what is not None:
                seen |= set(store.glob(what))
                if len(seen) >= target:
                    time.sleep(after_s)
                    return
            time.sleep(0.0003 if what else 0.02)

    def crowd(self) -> None:
        """Eight writers, two and two of the same cells, and four readers that ask all the time."""
        store = self.folder / "crowd"
        asked = (
            ["sql", "SELECT count(*) AS n, count(DISTINCT run_id) AS r FROM tokens", "--format", "json"],
            ["sql", "SELECT run_id, sum(n_tokens) AS n FROM rank_counts GROUP BY ALL", "--format", "csv"],
            ["status", "--format", "json"],
            ["fit", "resamples=50", "laws=[rbp]", "k=10", "--format", "json"],
        )
        writers = [started(sweep((limit,), store), self.cwd) for limit in (*LIMITS[:4], *LIMITS[:4])]

        def read(words: list[str]) -> list[subprocess.CompletedProcess[str]]:
            answers = []
            while any(writer.poll() is None for writer in writers):
                answers.append(finished([*words, "--store", str(store)], self.cwd))
            return answers

        with ThreadPoolExecutor(len(asked)) as pool:
            answers = [answer for each in pool.map(read, asked) for answer in each]
        refused = 0
        for answer in answers:
            nothing_yet = answer.returncode == 2 and any(
                words in answer.stderr
                for words in ("holds no runs", "does not exist", "no group of runs", "no runs in")
            )
            refused += nothing_yet
            if "Traceback" in answer.stderr or (answer.returncode and not nothing_yet) or "corrupt" in answer.stderr:
                self.fail(f"a reader: {answer.args[3:]}: {answer.stderr[-600:]}")
        for writer in writers:
            said = writer.communicate()[1]
            if writer.returncode or "Traceback" in said:
                self.fail(f"a writer: {said[-600:]}")
        self.check(store, "the crowd")
        n_cells = len(list(Store(store).records("cells")))
        if n_cells != 3 * 4:
            self.fail(f"the crowd: {n_cells} cells, expected 12")
        print(f"8 writers and 4 readers: {len(answers)} answers ({refused} before there was a run), {n_cells} cells")

    def copied_away(self, n_rounds: int) -> None:
        """Two machines push the undisturbed store at once over a server that fails, a third pulls; all are killed."""
        with storage() as server:
            url, env = f"s3://{BUCKET}/soak", server.environment(self.folder)
            os.environ.update(env)
            pulled, n_kills, n_faults = self.folder / "pulled", 0, 0
            ways = [["store", "push", url, "--store", str(self.reference)]] * 2
            ways.append(["store", "pull", url, "--store", str(pulled)])
            for number in range(n_rounds):
                server.faults[:] = [
                    Fault(
                        self.random.choice(("refuse", "lose", "hang up", "slow")),
                        self.random.choice(("PUT", "GET", "HEAD")),
                        self.random.choice(("/runs/", "/cells/", "/vocab/", "")),
                        times=self.random.randint(1, 4),
                        seconds=self.random.uniform(0.1, 3),
                    )
                    for _ in range(4)
                ]
                processes = [started(words, self.cwd, env=env) for words in ways]
                n_sent, until = len(server.keys("soak")) + self.random.randint(1, 20), time.monotonic() + 60
                while time.monotonic() < until and any(process.poll() is None for process in processes):
                    if len(server.keys("soak")) >= n_sent:
                        break
                    time.sleep(0.02)
                n_kills += sum(process.poll() is None for process in processes)
                for said in [kill(process) for process in processes]:
                    if "Traceback" in said:
                        self.fail(f"copied away, round {number}: {said[-600:]}")
                n_faults += sum(fault.seen for fault in server.faults)
                server.faults.clear()
                if pulled.is_dir():
                    self.check(pulled, f"copied away, round {number}")
                print(f"copied away, round {number}: {len(server.keys('soak'))} objects, {n_kills} killed", flush=True)
            for words in ways:
                said = started(words, self.cwd, env=env).communicate()[1]
                if "Traceback" in said:
                    self.fail(f"copied away, the end: {said[-600:]}")
            self.check(pulled, "copied away, the end", complete=True)
            print(f"{n_rounds} rounds of push and pull, {n_kills} killed, {n_faults} faults met")

    def flips(self, n_flips: int) -> None:
        """Single bits, in any file of a run: `verify` names the run, and what is read of it is refused."""
        store = Store(Path(shutil.copytree(self.reference, self.folder / "flipped")))
        expected, run_ids, seen = self._everything(store), store.run_ids(), Counter[str]()
        for _ in range(n_flips):
            run_id = self.random.choice(run_ids)
            path = self.random.choice(sorted(store.run_folder(run_id).iterdir()))
            whole = path.read_bytes()
            at = self.random.randrange(len(whole))
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << self.random.randrange(8)]) + whole[at + 1 :])
            is_named = run_id in {fault.name for fault in verify(store).faults}
            if path.suffix == ".parquet" and not is_named:
                self.fail(f"verify does not find a flipped bit in {path} at {at}")
            try:
                same = self._everything(store) == expected
                seen["changes no answer" if same else "changes an answer, found by verify alone"] += 1
            except (RbpxError, OSError, ValueError) as problem:
                seen["refused while reading"] += 1
                if "verify" not in str(problem) and path.suffix == ".parquet":
                    self.fail(f"a bit of {path}: {problem}")
            path.write_bytes(whole)
        print(f"{n_flips} flipped bits: {dict(seen)}")

    def _everything(self, store: Store) -> str:
        with connect(store) as connection:
            return str(ask_user(connection, EVERYTHING).to_pylist())

    def full(self) -> None:
        """A disk of too little room, of many sizes; then there is room, and the same line goes on."""
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
            print("no right to mount a small disk: the full disk was left out")
            return
        n_full = 0
        try:
            for kib in (16, 64, 160, 340, 700):
                for path in disk.iterdir():
                    shutil.rmtree(path)
                subprocess.run(["mount", "-o", f"remount,size={kib}k", disk], check=True)
                answer = finished(sweep(LIMITS[:2], disk / "store"), self.cwd)
                n_full += answer.returncode == 1
                if "Traceback" in answer.stderr or answer.returncode not in (0, 1):
                    self.fail(f"a disk of {kib} KiB: {answer.returncode} {answer.stderr[-900:]}")
                read = finished(["sql", "SELECT count(*) FROM runs", "--store", str(disk / "store")], self.cwd)
                if "Traceback" in read.stderr:
                    self.fail(f"reading on a disk of {kib} KiB: {read.stderr[-600:]}")
                if (disk / "store").is_dir():
                    self.check(disk / "store", f"a disk of {kib} KiB")
                    torn = [p.name for p in Store(disk / "store").leftovers()]
                    if torn:
                        self.fail(f"a disk of {kib} KiB: left {torn}")
                subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
                answer = finished(sweep(LIMITS[:2], disk / "store"), self.cwd)
                self.check(disk / "store", f"room after {kib} KiB")
                if answer.returncode or len(list(Store(disk / "store").records("cells"))) != 6:
                    self.fail(f"room after {kib} KiB: {answer.stderr[-600:]}")
                print(f"disk of {kib} KiB: done", flush=True)
            print(f"5 disks too small, {n_full} of them full while measuring; each store went on when there was room")
        finally:
            subprocess.run(["umount", disk], check=True)

    def copies(self, n_rounds: int) -> None:
        """What file syncing and people do: copies and deletions of any files, while two commands measure and fit."""
        store = Store(Path(shutil.copytree(self.reference, self.folder / "copied")))
        fit = ["fit", "resamples=20", "laws=[rbp]", "k=[1,10]", "--store", str(store.root)]
        assert finished(fit, self.cwd).returncode == 0
        n_cells, n_copies, n_deletions = len(store.record_files("cells")), 0, 0
        for number in range(n_rounds):
            writers = [started(words, self.cwd) for words in (fit, sweep(LIMITS[:2], store.root))]
            copied, deleted = [], []
            for kind in ("cells", "fits", "vocab", "runs"):
                files = sorted((store.root / kind).glob("[!._]*"))
                whole = [path for path in files if not any(mark in path.name for mark in (" (1)", "sync-conflict"))]
                for path in self.random.sample(whole, min(2, len(whole))):
                    mark = self.random.choice([" (1)", ".sync-conflict-20261122", "-HOST"])
                    copy = path.with_name(f"{path.stem}{mark}{path.suffix}")
                    with suppress(FileNotFoundError):  # replaced at this moment
                        (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
                        copied.append(copy)
                if kind in ("cells", "fits") and number % 2:
                    gone = self.random.choice(whole)
                    gone.unlink(missing_ok=True)
                    deleted.append(gone)
            for writer in writers:
                said = writer.communicate()[1]
                if writer.returncode or "Traceback" in said:
                    self.fail(f"copies, round {number}: {said[-600:]}")
            rows = finished(
                ["sql", "SELECT cell_key FROM runs", "--format", "json", "--store", str(store.root)], self.cwd
            )
            keys = [row["cell_key"] for row in json.loads(rows.stdout or "[]")]
            if len(keys) != len(set(keys)) or len(keys) > n_cells:
                self.fail(f"copies, round {number}: {len(keys)} rows of {len(set(keys))} cells")
            told = finished(["store", "verify", "--format", "json", "--store", str(store.root)], self.cwd)
            names = {fault["name"] for fault in json.loads(told.stdout)}
            for copy in copied:
                if (copy.name if copy.is_dir() else copy.stem) not in names:
                    self.fail(f"copies, round {number}: verify does not name {copy}")
            for copy in copied:
                shutil.rmtree(copy) if copy.is_dir() else copy.unlink()
            for words in (sweep(LIMITS, store.root), fit):
                answer = finished(words, self.cwd)
                if answer.returncode:
                    self.fail(f"copies, round {number}: {answer.stderr[-600:]}")
            finished(["store", "gc", "--store", str(store.root)], self.cwd)
            self.check(store.root, f"copies, round {number}", complete=True)
            n_copies, n_deletions = n_copies + len(copied), n_deletions + len(deleted)
            print(f"copies, round {number}: {len(copied)} copies, {len(deleted)} deletions", flush=True)
        print(f"{n_copies} copies and {n_deletions} deletions beside two writers: none counted, all named")


def main() -> int:
    """Everything, or the parts named."""
    line = argparse.ArgumentParser()
    line.add_argument("--rounds", type=int, default=60)
    line.add_argument("--flips", type=int, default=400)
    line.add_argument("--seed", type=int, default=1)
    line.add_argument("--folder", type=Path, default=Path("soak"))
    line.add_argument("--copies", type=int, default=10)
    line.add_argument("--sends", type=int, default=10)
    line.add_argument("--parts", default="rounds,crowd,sends,flips,full,copies")
    asked = line.parse_args()
    folder = asked.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    soak = Soak(folder, asked.seed)
    parts = asked.parts.split(",")
    soak.rounds(asked.rounds if "rounds" in parts else 0)
    if "crowd" in parts:
        soak.crowd()
    if "sends" in parts:
        soak.copied_away(asked.sends)
    if "flips" in parts:
        soak.flips(asked.flips)
    if "full" in parts:
        soak.full()
    if "copies" in parts:
        soak.copies(asked.copies)
    print("nothing was lost, doubled, torn or silently wrong" if not soak.wrong else f"{len(soak.wrong)} WRONG")
    (folder / "wrong.json").write_text(json.dumps(soak.wrong, indent=1))
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
