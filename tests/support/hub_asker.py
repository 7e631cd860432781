"""A process that draws samples on request: a line of JSON in, a line out. The libraries read their settings once.

{"dataset": {...}, "store": DIR, "limit": N, "seed": N} draws as rbpx does; {"load": {...}} does as the paper's code,
literally, with `datasets`.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def draw(asked: dict[str, Any]) -> dict[str, Any]:
    """What rbpx draws."""
    from rbpx.config.options import Draw
    from rbpx.config.text.dataset import DatasetConfig
    from rbpx.data.samples import sample
    from rbpx.store.store import Store

    keys = {"kind": "hub", **asked["dataset"]}
    keys["draw"] = Draw(keys.get("draw", "whole"))
    store = Store(Path(asked["store"]))
    told: list[Any] = []
    found = sample(
        DatasetConfig(**keys), asked["limit"], asked["seed"], store, lambda what: lambda *at: told.append(at)
    )
    documents = [[d.doc_id, d.source_id, d.text] for d in found.documents]
    return {"documents": documents, "commit": found.commit, "told": told[-1:]}


def load(asked: dict[str, Any]) -> dict[str, Any]:
    """What the paper's code takes."""
    from datasets import Dataset, load_dataset

    path, subset, split, fields = (asked[key] for key in ("hub", "subset", "split", "fields"))
    if asked["streaming"]:
        rows = Dataset.from_list(list(load_dataset(path, subset, split=split, streaming=True).take(asked["limit"])))
    else:
        rows = load_dataset(path, subset, split=split)
    rows = rows.shuffle(seed=asked["seed"])
    rows = rows.select(range(min(asked["limit"], len(rows))))
    return {"texts": ["\n".join(row[name] for name in fields) for row in rows]}


def main() -> None:
    """Answer until there are no more lines."""
    for line in sys.stdin:
        asked, began = json.loads(line), time.monotonic()
        try:
            answer = load(asked["load"]) if "load" in asked else draw(asked)
        except Exception as problem:
            answer = {"error": type(problem).__name__, "says": str(problem)}
        print(json.dumps(answer | {"seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main()
