"""Writes answers anew, after a mend that moves numbers: `python -m tests.same_answers.write NAME ...`.

A name is that of a file (demo-fit), of a store or of a verb; without any, all are written.
"""

import json
import os
import shutil
import sys
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.same_answers.answers import STORES, Ask, asks


def main(names: list[str]) -> None:
    """Write the files, and remove those that nothing is asked for."""
    chosen = [ask for ask in asks() if not names or {ask.store, ask.verb, ask.file.stem} & set(names)]
    for file, of_file in groupby(sorted(chosen, key=lambda ask: ask.file), key=lambda ask: ask.file):
        answers = {ask.line: _answer(ask) for ask in of_file}
        file.write_text(_text(answers), encoding="utf-8")
        print(f"{file.name}: {len(answers)} asked, {sum(len(each['rows']) for each in answers.values())} rows")
    for file in set(STORES.parent.glob("*-*.json")) - {ask.file for ask in asks()}:
        file.unlink()


def _answer(ask: Ask) -> dict[str, Any]:
    """Rows from a store that nothing else was asked of, and apart from them what they have in common."""
    with TemporaryDirectory() as folder:
        rows, _ = ask.found(Path(shutil.copytree(STORES, Path(folder) / "stores")))
    first = rows[0] if rows else {}
    same = {key: value for key, value in first.items() if all(key in row and row[key] == value for row in rows)}
    return {"same": same, "rows": [{key: value for key, value in row.items() if key not in same} for row in rows]}


def _text(answers: dict[str, Any]) -> str:
    """JSON with a line for each row."""
    parts = []
    for line, answer in answers.items():
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in answer["rows"])
        same = json.dumps(answer["same"], ensure_ascii=False)
        parts.append(f'{json.dumps(line)}: {{"same": {same}, "rows": [\n{rows}\n]}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1:])
