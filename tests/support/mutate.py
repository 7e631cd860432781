"""`make mutate`: small mistakes put into the store's and the kernels' code, one at a time; do tests notice each?

`python -m tests.support.mutate --sample 80 --seed 0 [MODULE ...]`. Each mistake is made in a copy of the checkout, and
the tests of that module run there, in a process forked from one that has read the libraries. What no test notices is
printed: it calls for a test, or for a reason why it changes nothing that is promised, which goes into EQUIVALENT. Exits
1 where others survive.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
_RANKS = ["tests/ranks/test_definition.py", "tests/ranks/test_tiles.py", "tests/ranks/test_ties.py"]
_FUZZ = "tests/project/test_fuzz_store.py"
_RECORDS = [_FUZZ, "tests/files/test_sealed_properties.py", "tests/store/test_names.py", "tests/store/test_damage.py"]
_LIMITS = "tests/store/test_sql_limits.py"
_BUCKET = ["tests/store/test_remote.py", "tests/store/test_bucket.py", "-k", "not eight_machines and not dies"]
_IMPORT = [f"tests/store/test_import{name}.py" for name in ("_quantities", "_as_written", "_wide", "_sizes", "")]
# Module -> the tests that are meant to notice a mistake in it, those that take least first.
ROOMS = {
    "ranks/definition": _RANKS,
    "ranks/tiles": _RANKS,
    "ranks/cpu_kernel": _RANKS,
    "ranks/cpu_product": _RANKS,
    "ranks/tempered": ["tests/ranks/test_tempered.py"],
    "files/entries": ["tests/files/test_atomic.py"],
    "files/digest": [*_RECORDS, "tests/files/test_digest.py", "tests/files/test_sealed_properties.py", _FUZZ],
    "store/store": [*_RECORDS, "tests/store/test_store.py", "tests/store/test_read_only.py"],
    "store/checks/integrity": _RECORDS,
    "store/files/ledger": [_FUZZ, "tests/store/test_names.py"],
    "store/answers": [_FUZZ, "tests/cli/test_kept_answers.py"],
    "store/index": [
        *("tests/store/test_known_rows.py", "tests/store/test_store.py", "tests/store/test_read_only.py"),
        *("tests/store/test_names.py", "tests/store/test_damage.py"),
    ],
    "store/merge": ["tests/store/test_merge.py"],
    "store/checks/values": ["tests/store/test_record_values.py", *_RECORDS],
    "store/cell_states": ["tests/store/test_cell_states.py"],
    # Its commands are forked by a server, which a process that was forked itself cannot start.
    "store/sql/bounded": [_LIMITS, "-k", "not cannot_be_interrupted"],
    "store/sql/queries": [_LIMITS, "tests/store/test_sql.py", "-k", "not cannot_be_interrupted"],
    "store/checks/verify": ["tests/store/test_damage.py", "tests/store/test_names.py"],
    "store/imports/contradictions": [
        *("tests/files/test_row_digest.py", "tests/store/test_contradictions.py", "tests/store/test_import.py"),
    ],
    # Those left out have machines that are killed, or many of them.
    "store/remote/mirror": _BUCKET,
    "store/remote/bucket": _BUCKET,
    "store/remote/outbox": ["tests/store/test_outbox.py", *_BUCKET],
    "config/request": ["tests/config/test_keys.py"],
    "store/imports/observations": _IMPORT,
    "store/imports/kept": _IMPORT,
    "store/imports/cells": _IMPORT,
    "store/imports/faults": _IMPORT,
    "store/imports/chosen_rows": _IMPORT,
    "config/imports": _IMPORT,
}
# (module, the line with the mistake in it, stripped) -> why no test can notice it
_SIZE = "the size of a part moves no number"
_LAYOUT = "how it lies in the file; what is read is the same"
EQUIVALENT = {
    ("ranks/definition", "_CACHE_BYTES = 1 << 21"): _SIZE,
    ("ranks/definition", "_GPU_BYTES = 256 << 21"): _SIZE,
    ("ranks/definition", "_GPU_BYTES = 257 << 20"): _SIZE,
    (
        "ranks/tiles",
        "n_most = min(_SLAB_ROWS, max(2, _ALL_TILES_BYTES // (4 * _TILE_ENTRIES * n_threads)))",
    ): _SIZE,
    ("ranks/cpu_kernel", "NEAR_KEPT = 257"): _SIZE,
    ("ranks/cpu_kernel", "top, absolute = (-_ABSOLUTE, i32(1))"): "the bits of 1 are the least number above 0",
    ("ranks/cpu_kernel", "least, above, absolute = (i32(1), i32(0), i32(0))"): "a row is looked through once more",
    ("ranks/cpu_kernel", "if _float(absolute) >= top_n[i] + _SPREAD:"): "what is taken off is added again",
    ("store/checks/integrity", "_REMEMBERED_FROM_BYTES, _REMEMBERED_FROM_ITEMS = (1 << 29, 256)"): _SIZE,
    (
        "store/checks/integrity",
        "n_bytes = sum((seen[1] for of_one in stamps.values() for seen in of_one if seen))",
    ): "results are remembered of smaller stores too",
    ("ranks/tiles", "_ROUNDING = 2.0 ** (-21)"): "many times what products move is still many times",
    ("ranks/tiles", "if len(shares) != 1:"): "one thread or several give the same",
    ("files/digest", "indent = 2 if in_lines else None"): _LAYOUT,
    ("files/digest", "atomic_write_text(path, json.dumps(entries, indent=1), durable=False)"): _LAYOUT,
    ("files/digest", "atomic_write_text(path, json.dumps(entries, indent=0), durable=True)"): "it only waits longer",
    ("store/checks/integrity", "def _first(names: list[str], most: int=4) -> str:"): "how many names a line shows",
    (
        "store/remote/outbox",
        "with suppress(OSError), atomic_write(folder, durable=True) as temporary:",
    ): "it only waits longer",
    (
        "store/imports/contradictions",
        "combined = combined * (len(encoded.dictionary) + 1) - encoded.indices.to_numpy(zero_copy_only=False)",
    ): "each combination still has a number of its own",
    (
        "store/imports/contradictions",
        "if combined.size and combined.max() >= 2 ** 31:",
    ): "both fit, one of them is packed tighter",
    ("store/cell_states", "alive = time.time() - written <= _SILENT_S and _may_live(facts)"): "one instant of time",
    (
        "store/cell_states",
        "self._thread = threading.Thread(target=self._beat, name='rbpx-heartbeat', daemon=False)",
    ): "every block ends its thread",
    (
        "store/imports/observations",
        "rows = np.flatnonzero(off >= np.maximum(_FLOAT32 * p, 2.0 ** (-52)))",
    ): "rows that are off by less than their last digit are right either way",
    (
        "store/imports/observations",
        "p = pc.fill_null(share, 0).to_numpy(zero_copy_only=True)",
    ): "floats without a null are never copied",
}
_LIBRARIES = ("torch", "duckdb", "pyarrow.parquet", "pyarrow.dataset", "scipy.stats", "numba", "hydra", "hypothesis")
_LIBRARIES += ("transformers", "tokenizers", "lmfit", "rich", "filelock", "accelerate", "pytest", "omegaconf", "yaml")
_PATIENCE = 4.0  # times what the tests take without a mistake, and a minute

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult},
    **{ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift},
}


@dataclass(frozen=True)
class Mutant:
    """A module with one mistake."""

    module: str
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"rbpx/{self.module}.py:{self.line}: {self.before}  ->  {self.after}"


def mutants(module: str, source: str) -> list[Mutant]:
    """All mistakes that are made in a module, in the order of its lines."""
    made, n = [], 0
    while (mutant := _with_mistake(module, source, n)) is not None:
        made.append(mutant)
        n += 1
    return made


def _with_mistake(module: str, source: str, number: int) -> Mutant | None:
    tree = ast.parse(source)
    for at, change in enumerate(_changes(tree)):
        if at == number:
            statement, before = change.statement, ast.unparse(change.statement)
            change.make()
            after = ast.unparse(statement) if change.instead is None else change.instead
            first = next(
                (pair for pair in zip(before.splitlines(), after.splitlines(), strict=False) if pair[0] != pair[1]),
                (before.splitlines()[0], after),
            )
            return Mutant(module, change.line, *(text.strip() for text in first), ast.unparse(tree))
    return None


@dataclass
class _Change:
    statement: ast.stmt
    line: int
    make: Callable[[], object]
    instead: str | None = None


def _changes(tree: ast.Module) -> Iterator[_Change]:
    """Comparisons, operators, numbers, truths and conditions turned round; calls, deletions and refusals left out."""
    for block in [body for node in ast.walk(tree) for body in _bodies(node)]:
        for at, statement in enumerate(block):
            if isinstance(statement, ast.Import | ast.ImportFrom | ast.ClassDef):
                continue
            called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            if called or isinstance(statement, ast.Raise | ast.Continue | ast.Delete | ast.AugAssign):
                yield _Change(statement, statement.lineno, lambda b=block, a=at: b.__setitem__(a, ast.Pass()), "pass")
            for node in _own_expressions(statement):
                yield from (_Change(statement, node.lineno, make) for make in _expression_changes(node))


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement: not those of the statements in it, of annotations, decorators and f-strings."""
    left_out = {"annotation", "returns", "decorator_list", "body", "orelse", "finalbody", "handlers", "type_comment"}

    def below(node: ast.AST) -> Iterator[ast.expr]:
        for name, value in ast.iter_fields(node):
            skipped = name in left_out and isinstance(node, ast.stmt | ast.ExceptHandler | ast.arg)
            for child in value if isinstance(value, list) else [value]:
                if skipped or not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.stmt):
                    continue
                if isinstance(child, ast.expr):
                    yield child
                yield from below(child)

    yield from below(statement)


def _expression_changes(node: ast.expr) -> Iterator[Callable[[], object]]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            yield lambda a=at, o=operator: node.ops.__setitem__(a, _COMPARISONS[type(o)]())
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and not _is_text(node):
        yield lambda: setattr(node, "op", _OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda: _replace(node, ast.Call(_name("bool"), [node.operand], []))
    elif isinstance(node, ast.IfExp):
        yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield lambda: setattr(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield lambda: setattr(
            node, "value", node.value + 1 if isinstance(node.value, int) else node.value * 1.001 or 1.0
        )


def _replace(node: ast.expr, other: ast.expr) -> None:
    """Make a node what another is, in place."""
    other = copy.copy(ast.copy_location(other, node))
    node.__class__ = other.__class__  # type: ignore[assignment]
    node.__dict__.clear()
    node.__dict__.update(other.__dict__)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


# ------------------------------------------------------------------------------------------------------------- running


class Copy:
    """A copy of the checkout whose tests are run, each time in a process of its own."""

    def __init__(self, folder: Path) -> None:
        """Copy what git knows, and what it does not ignore."""
        self.folder, self.project = folder, folder / "project"
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=PROJECT, capture_output=True, check=True, text=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            target = self.project / name
            if (PROJECT / name).is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / name, target)
        (folder / "shared").symlink_to(PROJECT.parent / "shared")
        for name in _LIBRARIES:
            importlib.import_module(name)

    def passes(self, tests: list[str], patience_s: float, quiet: bool = True) -> bool:
        """Whether tests pass; those that take longer than they may are stopped and count as not passing."""
        process = multiprocessing.get_context("fork").Process(target=self._test, args=(tests, quiet))
        process.start()
        process.join(patience_s)
        if process.is_alive():
            os.killpg(process.pid or 0, 9)
            process.join()
        return process.exitcode == 0

    def _test(self, tests: list[str], quiet: bool) -> None:
        os.setpgrp()  # to be ended with all that it starts
        os.chdir(self.project)
        for name in [name for name in sys.modules if name.partition(".")[0] in ("rbpx", "tests")]:
            del sys.modules[name]
        sys.path[:] = [str(self.project), *(place for place in sys.path if Path(place).resolve() != PROJECT)]
        # With these a family of models is measured once for all, by the code without a mistake (tests.support.once).
        os.environ |= {"PYTEST_XDIST_WORKER": "one", "PYTHONPATH": str(self.project), "PYTHONDONTWRITEBYTECODE": "1"}
        if quiet:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        pytest = importlib.import_module("pytest")
        base = self.folder / "base" / "one"
        words = [
            "-x",
            "-q",
            "--no-header",
            "-W",
            "ignore",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "--basetemp",
            str(base),
            *tests,
        ]
        os._exit(int(pytest.main(words)))


@contextlib.contextmanager
def _written(path: Path, source: str) -> Iterator[None]:
    before = path.read_text(encoding="utf-8")
    path.write_text(source, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def sampled(modules: list[str], n: int, seed: int) -> dict[str, list[Mutant]]:
    """About n mistakes in some modules: of each in proportion to how many it has, two at least."""
    every = {name: mutants(name, (PROJECT / "rbpx" / f"{name}.py").read_text(encoding="utf-8")) for name in modules}
    total = sum(map(len, every.values()))
    return {
        name: sorted(
            random.Random(f"{seed} {name}").sample(made, min(len(made), max(2, round(n * len(made) / total)))),
            key=lambda mutant: mutant.line,
        )
        for name, made in every.items()
    }


def main() -> int:
    """Make the mistakes and say which of them were noticed."""
    line = argparse.ArgumentParser()
    line.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(ROOMS)}; all without one")
    line.add_argument("--sample", type=int, default=80)
    line.add_argument("--seed", type=int, default=0)
    asked = line.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    survived: list[Mutant] = []
    unsound: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        checkout = Copy(Path(folder))
        (checkout.folder / "base").mkdir()
        for module, chosen in sampled(asked.modules or list(ROOMS), asked.sample, asked.seed).items():
            began = time.monotonic()
            if not checkout.passes(ROOMS[module], 1200, quiet=False):
                print(f"the tests of {module} do not pass without a mistake", flush=True)
                unsound.append(module)
                continue
            patience_s = 60 + _PATIENCE * (time.monotonic() - began)
            for mutant in chosen:
                with _written(checkout.project / "rbpx" / f"{module}.py", mutant.source):
                    survives = checkout.passes(ROOMS[module], patience_s)
                reason = EQUIVALENT.get((module, mutant.after))
                verdict = "killed" if not survives else "equivalent" if reason else "survived"
                counts[module, verdict] += 1
                print(f"{verdict:10} {mutant}" + (f"  ({reason})" if survives and reason else ""), flush=True)
                if verdict == "survived":
                    survived.append(mutant)
    print(f"\n{'module':20} {'made':>6} {'killed':>7} {'equivalent':>11} {'survived':>9}")
    for module in dict.fromkeys(module for module, _ in counts):
        n = [counts[module, verdict] for verdict in ("killed", "equivalent", "survived")]
        print(f"{module:20} {sum(n):6} {n[0]:7} {n[1]:11} {n[2]:9}")
    return 1 if survived or unsound else 0


if __name__ == "__main__":
    sys.exit(main())
