"""Every question answers of the frozen stores what it answered before; a difference is a mistake, or a mend.

After a mend `python -m tests.same_answers.write NAME ...` writes the answers that it moves, and the changelog says so.
"""

import json
from pathlib import Path

import pytest

from rbpx.questions.registry import analyses, asking
from rbpx.questions.render import plain_rows
from rbpx.questions.result import Result
from rbpx.store.schema import FITS
from tests.same_answers.answers import FOLDER, Ask, asks, differences, flat, outside
from tests.support.asking import Asked

ASKS = asks()
KEYS = json.loads((FOLDER / "keys.json").read_text(encoding="utf-8"))
# Keys that change no number: what is printed, how it looks, where it goes, and how long it may take.
NO_NUMBER = {"details", "width", "font_size", "font", "legend", "store", "format", "spreadsheet", "output"}
NO_NUMBER |= {"sql_memory_mib", "sql_timeout_s", "device", "tokens_per_batch", "register", "top"}
# Keys that choose runs, and what all intervals share: asked of some verb, not of each.
OF_SOME = {"model", "size", "dataset", "protocol", "family", "source", "variant", "checkpoints", "resamples"}


@pytest.mark.parametrize("ask", [pytest.param(ask, id=f"{ask.store} {ask.line}") for ask in ASKS if ask.daily])
def test_a_question_answers_as_it_did(ask: Ask, frozen: Path) -> None:
    rows, results = ask.found(frozen)
    differing = differences(ask.expected(), rows, ask.verb)
    assert not differing, f"{len(differing)} differences:\n" + "\n".join(differing[:20])
    assert [each for row in rows for each in outside(row)] == []
    verbs = [verb for verb, *_ in ask.questions()]
    plain = {key for result in results for verb in verbs for row in plain_rows(verb, [result]) for key in row}
    assert sorted(set(KEYS[f"{ask.store} {ask.line}"]) - plain) == []
    assert {name: empty for result in results for name, empty in _empty(result).items()} == {}
    if ask.said:
        # A terminal of 100 columns shows the answer, a sentence, and little beside it.
        answer, *rest = Asked(ask.verb, [], results, []).table(100, details=False).splitlines()
        assert answer == ask.said
        has_texts = any(result.texts for result in results)
        assert [line for line in rest if line.startswith(" ") and len(line) > 100 and not has_texts] == []
        assert len(rest) < 45


def _empty(result: Result) -> dict[str, str]:
    """Columns of tables that say nothing of a value that the rows have under its name."""
    known = {key for row in result.rows for key, value in row.items() if value not in (None, "")}
    return {
        f"{table.name}: {column.name}": key
        for table in result.tables
        for column in table.columns
        for key in column.keys
        if key in known and table.rows and all(row.get(key) is None for row in table.records())
    }


def test_a_number_outside_its_interval_is_found_at_any_depth() -> None:
    at = [{"value": 0.1, "lo": 0.0, "hi": 0.2}, {"value": 0.3, "lo": 0.0, "hi": 0.2}]
    row = {"alpha": 1.0, "alpha_lo": 0.5, "alpha_hi": None, "C": 3.0, "params": {"C_lo": 1.0, "C_hi": 2.0, "at": at}}
    assert [each.partition(":")[0] for each in outside(flat(row))] == ["params.C_lo", "params.at[1].lo"]


def test_columns_of_fits_keep_their_names() -> None:
    assert KEYS["fits"] == list(FITS.names)


def test_every_key_that_changes_a_number_is_asked() -> None:
    typed = {(verb, word.partition("=")[0]) for ask in ASKS for verb, *words in ask.questions() for word in words}
    asked = {key for _, key in typed}
    verbs = [name for name, each in analyses().items() if not each.measures]
    assert {ask.verb for ask in ASKS if ask.daily} >= set(verbs)
    lacking = {(verb, key) for verb in verbs for key in asking(verb).keys} - typed
    assert sorted(pair for pair in lacking if pair[1] not in NO_NUMBER | OF_SOME) == []
    assert asked >= OF_SOME


@pytest.mark.parametrize(
    "name", ["trainings-fit", "demo-ranks", "imported-multiplier", "trainings-surface", "items-downstream"]
)
def test_a_row_that_is_gone_and_any_number_that_moves_by_a_hundredth_are_noticed(name: str) -> None:
    ask = next(ask for ask in ASKS if ask.file.stem == name and ask.daily)
    rows = ask.expected()
    assert differences(rows, rows[::-1], ask.verb) == []
    assert differences(rows, rows[1:], ask.verb)
    for row in rows[:4]:
        for key, value in row.items():
            if isinstance(value, float) and abs(value) > 1e-4:
                assert differences([row], [{**row, key: value * 1.01}], ask.verb), f"{key}={value}"
                assert differences([row], [{of: each for of, each in row.items() if of != key}], ask.verb), key


def test_there_is_an_answer_to_each_line_in_a_few_megabytes() -> None:
    assert {file.stem for file in FOLDER.glob("*-*.json")} == {ask.file.stem for ask in ASKS}
    assert all(ask.expected() for ask in ASKS)
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 10e6
