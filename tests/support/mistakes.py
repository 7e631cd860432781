"""Small mistakes in the code of rbpx, and modules that note who comes by the place of each: for `make mutate`."""

import ast
import copy
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Room -> packages of rbpx whose mistakes are drawn together.
ROOMS = {
    "store": ("store", "files"),
    "kernels": ("ranks",),
    "laws": ("laws",),
    "questions": ("questions", "runs"),
    "measuring": ("measure", "models", "data"),
    "asking": ("config", "cli", "api", "display", "report"),
}
# The module that the places of mistakes call, in commands that a test starts too: they inherit the environment.
PASSERS_BY = """
import os
_seen = set()
def note(mistake):
    seen = mistake, os.environ.get("MUTATE_TEST"), os.environ.get("MUTATE_NOTES")
    if None not in seen and seen not in _seen:
        _seen.add(seen)
        with open(seen[2], "a") as notes:
            notes.write(f"{mistake} {seen[1]}\\n")
"""

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
    """A module with one mistake, the one of this number."""

    room: str
    module: str
    number: int
    line: int
    before: str
    after: str
    source: str

    @property
    def excerpts(self) -> tuple[str, str]:
        """What differs before and after, and fifty letters on either side."""
        pairs = enumerate(zip(self.before, self.after, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), 0)
        before, after = (text[max(0, same - 50) : same + 50] for text in (self.before, self.after))
        return before, after

    def __str__(self) -> str:
        return f"rbpx/{self.module}.py:{self.line}: {'  ->  '.join(self.excerpts)}"


def sampled(project: Path, rooms: Iterable[str], n: int, seed: int) -> list[Mutant]:
    """At most n mistakes of each room, of each module in proportion to how many it has."""
    made = []
    for room in rooms:
        sources = {
            path.relative_to(project / "rbpx").with_suffix("").as_posix(): path.read_text(encoding="utf-8")
            for package in ROOMS[room]
            for path in sorted((project / "rbpx" / package).rglob("*.py"))
        }
        every = [(name, at) for name, source in sources.items() for at, _ in enumerate(_changes(ast.parse(source)))]
        chosen = random.Random(f"{seed} {room}").sample(every, min(n, len(every)))
        made += [_with_mistake(room, name, sources[name], number) for name, number in sorted(chosen)]
    return made


def _with_mistake(room: str, module: str, source: str, number: int) -> Mutant:
    tree = ast.parse(source)
    change = list(_changes(tree))[number]
    before = ast.unparse(change.statement)
    change.make()
    after = ast.unparse(change.statement) if change.instead is None else change.instead
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    first = next((pair for pair in lines if pair[0] != pair[1]), (before.splitlines()[0], after))
    return Mutant(room, module, number, change.line, *(text.strip() for text in first), ast.unparse(tree))


@dataclass
class _Change:
    block: list[ast.stmt]
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
                make = partial(block.__setitem__, at, ast.Pass())
                yield _Change(block, statement, statement.lineno, make, "pass")
            for node in _own_expressions(statement):
                yield from (_Change(block, statement, node.lineno, make) for make in _expression_changes(node))


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


# ------------------------------------------------------------------------------------------------- which tests come by


@dataclass(eq=False)
class _Part:
    """A function or method, or a statement outside of both, and where what it does may come to pass.

    Attributes:
        defines: its name, or that of its class, after the module's.
        uses: names of that kind.
        notes: it is a function that runs as it is written.
        elsewhere: it runs at import, or is compiled: those that use it have to note it.
    """

    module: str
    defines: str
    node: ast.stmt
    uses: set[str]
    notes: bool
    elsewhere: bool


def _parts(module: str, tree: ast.Module) -> Iterator[_Part]:
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    home = {alias.name: str(node.module)[len("rbpx.") :].replace(".", "/") for node in froms for alias in node.names}
    is_compiled = any(node.module == "numba" for node in froms) or any(
        alias.name == "triton" for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    )
    for statement in tree.body:
        for inner in statement.body if isinstance(statement, ast.ClassDef) else [statement]:
            names = [node for node in ast.walk(inner) if isinstance(node, ast.Name)]
            uses = {f"{home.get(node.id, module)}.{node.id}" for node in names}
            for node in ast.walk(inner):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in home:
                    uses.add(f"{home[node.value.id]}/{node.value.id}.{node.attr}")
            stored = [node.id for node in names if isinstance(node.ctx, ast.Store)]
            defines = getattr(statement, "name", stored[0] if stored else "")
            notes = isinstance(inner, ast.FunctionDef) and not (is_compiled and inner.decorator_list)
            yield _Part(module, f"{module}.{defines}", inner, uses, notes, is_compiled or not notes)


def marked(project: Path, mutants: list[Mutant]) -> dict[Path, str]:
    """Modules in which the place of each mistake notes who comes by.

    Where that runs at import, or is compiled, the functions that use it note it.
    """
    paths = {
        path.relative_to(project / "rbpx").with_suffix("").as_posix(): path for path in project.rglob("rbpx/**/*.py")
    }
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    parts = [part for name, tree in trees.items() for part in _parts(name, tree)]
    changes = [list(_changes(trees[mutant.module]))[mutant.number] for mutant in mutants]
    places: list[tuple[list[ast.stmt], ast.stmt | None, int]] = []
    for n, (mutant, change) in enumerate(zip(mutants, changes, strict=True)):
        own = [part for part in parts if part.module == mutant.module]
        at = next(part for part in own if any(node is change.statement for node in ast.walk(part.node)))
        if not at.elsewhere and at.node is not change.statement:
            places.append((change.block, change.statement, n))
        else:
            users = _users(at, parts) or [part for part in own if part.notes]
            places += [(part.node.body, None, n) for part in users if isinstance(part.node, ast.FunctionDef)]
    for block, statement, n in places:
        after_words = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
        index = after_words if statement is None else next(i for i, other in enumerate(block) if other is statement)
        block.insert(index, ast.parse(f"__import__('passers_by').note({n})").body[0])
    names = {part.module for part in parts}
    return {paths[name]: ast.unparse(trees[name]) for name in names if "passers_by" in ast.unparse(trees[name])}


def _users(at: _Part, parts: list[_Part]) -> list[_Part]:
    """The functions that use what a part defines, through constants and compiled functions too."""
    found = [at]
    for used in found:
        if used.elsewhere:
            found += [part for part in parts if used.defines in part.uses and part not in found]
    return [part for part in found if part.notes]
