"""Counts the code lines and the modules of each package beside the target of docs/contributing/house.md.

A code line is neither docstring, comment, blank nor import. Modules are counted without `__init__.py`. Printed are a
Markdown table, the code lines of tests and the words of docstrings and documentation.

    python benchmarks/weight.py
"""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {
    ("questions",): 6_000,
    ("laws",): 6_200,
    ("models", "data", "measure"): 4_400,
    ("store",): 2_300,
    ("runs",): 1_900,
    ("config",): 1_600,
    ("display", "report"): 1_500,
    ("cli", "api"): 1_400,
    ("files", "(top)"): 830,
    ("ranks",): 470,
}
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """The docstrings of a module and of what it defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def code_lines(source: str) -> int:
    """The number of lines that are neither docstring, comment, blank nor import."""
    tree = ast.parse(source)
    passed: list[ast.stmt | ast.expr] = list(docstrings(tree))
    passed += [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    left_out = {line for node in passed for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    spans = (range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in _NO_CODE)
    return len({line for span in spans for line in span} - left_out)


def words_of(texts: Iterable[str]) -> int:
    """The number of words of these texts; the bars of a table are none."""
    return sum(any(map(str.isalnum, word)) for text in texts for word in text.split())


def room_of(path: Path) -> str:
    """The package of rbpx in which a module lies."""
    parts = path.relative_to(ROOT / "rbpx").parts
    return parts[0] if len(parts) > 1 else "(top)"


def main() -> None:
    """Print the table."""
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "rbpx").rglob("*.py")}
    print("| room | modules | code lines | target |\n|---|---|---|---|")
    for rooms, target in TARGETS.items():
        inside = [path for path in sources if room_of(path) in rooms]
        n_modules = sum(path.name != "__init__.py" for path in inside)
        print(f"| {', '.join(rooms)} | {n_modules} | {sum(code_lines(sources[p]) for p in inside):,} | {target:,} |")
    n_modules = sum(path.name != "__init__.py" for path in sources)
    print(f"| all | {n_modules} | {sum(map(code_lines, sources.values())):,} | {sum(TARGETS.values()):,} |\n")
    texts = [text.value for source in sources.values() for text in docstrings(ast.parse(source))]
    print(f"docstrings: {words_of(map(str, texts)):,} words")
    tests = {path: code_lines(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py")}
    for folder in ("nightly", "support"):
        print(f"tests/{folder}: {sum(n for path, n in tests.items() if folder in path.parts):,} code lines")
    print(f"tests: {sum(tests.values()):,} code lines")
    pages = {
        path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts
    }
    for is_written, what in ((True, "written by a command"), (False, "written by hand")):
        print(f"docs, {what}: {words_of(pages[p] for p in pages if ('reference' in p.parts) == is_written):,} words")


if __name__ == "__main__":
    main()
