"""Which architectures of transformers rbpx measures: each built, loaded and run in a tiny form; a table out.

`make census` writes it to docs/reference/architectures.csv. It takes some twenty minutes of one core.
"""

import csv
import logging
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from rbpx.errors import RbpxError, first_line
from rbpx.models.architecture import context_of
from rbpx.models.head import head_input
from rbpx.models.load import LoadedModel, load_model
from tests.support.architectures import on_meta, save_random, tiny_config
from tests.support.places import DOCS

TABLE = DOCS / "reference" / "architectures.csv"
COLUMNS = ("architecture", "model", "context", "beyond", "head", "in_16_bits", "refused")
CPU = torch.device("cpu")
_MOST_PARAMS = 100_000_000  # of a form that is still tiny; larger ones have parts that no setting here reaches
_LONG = 513  # tokens: one more than a window of protocol=paper


def examine(model_type: str) -> dict[str, str]:
    """One row of the table: what happens to a tiny model of this architecture, and its context by default."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    row = dict.fromkeys(COLUMNS, "") | {
        "architecture": model_type,
        "model": MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[model_type],
        "context": default_context(model_type),
    }
    with TemporaryDirectory() as folder:
        try:
            save_tiny(model_type, Path(folder))
        except Exception as problem:  # each fails in its own way
            return row | {"refused": f"not tried: no tiny form of it builds here ({_plain(problem, folder)})"}
        try:
            loaded = load_model(folder, None, "float32", CPU)
            row |= {"head": loaded.head.after, "beyond": beyond(loaded)}
        except Exception as problem:
            return row | {"refused": _plain(problem, folder)}
        row["in_16_bits"] = ", ".join(dict.fromkeys(_in_16_bits(folder, dtype) for dtype in ("bfloat16", "float16")))
    return row


def save_tiny(model_type: str, folder: Path, **changes: Any) -> None:
    """A checkpoint of the tiny form, with random weights and a tokenizer."""
    config = tiny_config(model_type, **changes)
    n_params = sum(p.numel() for p in on_meta(config).parameters())
    if n_params > _MOST_PARAMS:
        raise ValueError(f"{n_params:,} parameters are too many")
    save_random(config, folder)


def beyond(loaded: LoadedModel) -> str:
    """What a model does with inputs as long as its context, and with one token more.

    Raises:
        ValueError: it does not read inputs as long as its context, so that is wrong.
    """
    reads = loaded.context or _LONG
    try:
        _read(loaded, reads)
    except Exception as problem:
        raise ValueError(f"it does not read {reads} tokens: {first_line(problem)}") from problem
    if loaded.context is None:
        return "no limit"
    try:
        _read(loaded, reads + 1)
    except Exception:  # each fails in its own way
        return "fails"
    return "reads on"


def _read(loaded: LoadedModel, n_tokens: int) -> None:
    with torch.inference_mode():
        ids_BT = torch.arange(n_tokens)[None] % 200 + 50
        if loaded.head.product is not None:
            head_input(loaded.model, ids_BT)
        else:
            loaded.model(input_ids=ids_BT, use_cache=False)


def _in_16_bits(folder: str, dtype: str) -> str:
    try:
        return load_model(folder, None, dtype, CPU).head.after
    except Exception as problem:
        return _plain(problem, folder)


def default_context(model_type: str) -> str:
    """Tokens that a model of the default configuration reads, built without weights; empty where there is no limit."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        context = context_of(on_meta(CONFIG_MAPPING[model_type]()))
    except Exception:  # each fails in its own way
        return "?"
    return "" if context is None else str(context)


def _plain(problem: Exception, folder: str) -> str:
    """The reason in one line, without the folder."""
    text = str(problem) if isinstance(problem, RbpxError) else first_line(problem)
    return re.sub(r"\s+", " ", text.replace(folder, "it").replace("it cannot be measured: ", ""))[:240]


def main(model_types: Sequence[str]) -> None:
    """Examine these architectures, or all that the table has not, and write its rows in the order of their names."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    rows = {row["architecture"]: row for row in read_table()} if TABLE.is_file() else {}
    for model_type in model_types or [name for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if name not in rows]:
        rows[model_type] = examine(model_type)
        print(", ".join(value for value in rows[model_type].values() if value), flush=True)
        with TABLE.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows[name] for name in sorted(rows))


def read_table() -> list[dict[str, str]]:
    """The rows of the table as it is kept."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main(sys.argv[1:])
