"""Users' tables are read by one reader: the same rows from each format, and no second reader in the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

from rbpx.files import rows as home

PACKAGE = Path(home.__file__).parents[1]


# ------------------------------------------------------------------------------------------------- there is one reader

# Files of the store and what commands print are no users' tables.
OF_THE_STORE = {name: {"read_table"} for name in ("measure/plan/tokens_read.py", "store/verify.py")}


_READS = {
    ("csv", "reader"),
    ("csv", "DictReader"),
    ("gzip", "open"),
    ("gzip", "decompress"),
    ("gzip", "GzipFile"),
    ("pa_csv", "read_csv"),
}


def readers(tree: ast.AST) -> Iterator[str]:
    """Calls that read a CSV or Parquet file, and loops that parse a line of JSON."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            owner, name = node.func.value.id, node.func.attr
            if (owner, name) in _READS:
                yield name
            if owner in ("pq", "pyarrow", "parquet", "pd") and name in ("read_table", "read_csv", "read_json"):
                yield name
        if isinstance(node, ast.For | ast.ListComp | ast.GeneratorExp):
            calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
            over = ast.dump(node.iter if isinstance(node, ast.For) else node.generators[0].iter)
            if any(call.func.attr == "loads" for call in calls if isinstance(call.func, ast.Attribute)):
                if "split" in over or "open" in over:
                    yield "json lines"


def test_the_search_sees_what_it_looks_for() -> None:
    code = (
        "csv.reader(a)\ncsv.DictReader(a)\npq.read_table(a)\n[json.loads(line) for line in text.split()]\ncsv.writer(a)"
    )
    assert sorted(readers(ast.parse(code))) == ["DictReader", "json lines", "read_table", "reader"]
    assert "open" in set(readers(ast.parse(Path(home.__file__).read_text(encoding="utf-8"))))


def test_no_other_module_reads_a_users_table() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in ("files/rows.py", "files/delimited.py"):
            assert set(readers(ast.parse(path.read_text(encoding="utf-8")))) <= OF_THE_STORE.get(name, set()), name
