"""Keys of questions about single tokens, texts and items: which models, which slices, how many rows."""

from collections.abc import Mapping
from typing import Any, Final

from rbpx.config.keys.key import Asked, Key, name_of, names_of, positive, whole
from rbpx.errors import RbpxError

__all__ = ["ITEM_SLICES", "SLICES", "TokenKeys"]

ITEM_SLICES: Final = ("category", "domain")  # of the items of a task
SLICES: Final = ("position", "frequency", *ITEM_SLICES)


def _slices(key: str, value: Any) -> str | dict[str, str] | None:
    how = f"give {', '.join(SLICES)}, or conditions by name: slices='{{early: \"position < 64\"}}'"
    if value is None or value in SLICES:
        built_in: str | None = value
        return built_in
    if not isinstance(value, Mapping) or not value:
        raise RbpxError(f"slices={value} is not a choice of tokens; {how}")
    for name, condition in value.items():
        if not isinstance(name, str) or not isinstance(condition, str) or not condition.strip():
            raise RbpxError(f"slices: {name}: {condition} is not a name with a condition in quotes; {how}")
    return dict(value)


class TokenKeys(Asked):
    """Which tokens of which models."""

    doc: Key[int | None] = Key(int | None, None, whole(0), "N").says("doc_id of the document that is shown")
    a: Key[str | None] = Key(Any, None, name_of, "MODEL").says(
        "one of two models: FAMILY/SIZE, with @REVISION and :DTYPE, or a run_id"
    )
    b: Key[str | None] = Key(Any, None, name_of, "MODEL").says("the other one")
    base: Key[str | None] = Key(Any, None, name_of, "FAMILY").says(
        "what variant= is compared with: FAMILY, or FAMILY:VARIANT where its models were trained in several ways"
    )
    # a name or a dict; Hydra adds no keys to one that is typed
    slices: Key[str | dict[str, str] | None] = Key(Any, None, _slices, "").says(
        "position, frequency, category, domain, or SQL conditions by name: '{early: \"position < 64\"}'"
    )
    least: Key[int] = Key(int, 20, whole(1), "20").says("times that a token id must be scored to be listed")
    top: Key[int] = Key(int, 15, whole(1), "15").says("rows that are printed")
    group: Key[list[str] | None] = Key(Any, None, names_of, "NAME").says(
        "of many groups those with sections of their own: one, a list or all, as the table of a report names them"
    )
    sql_timeout_s: Key[float | None] = Key(float | None, 60.0, positive("seconds, or leave it out"), "60").says(
        "seconds that SQL of yours may compute, null for no limit"
    )
    sql_memory_mib: Key[int | None] = Key(int | None, None, whole(1), "MIB").says(
        "memory that SQL may hold, default half of the machine's or the container's"
    )
