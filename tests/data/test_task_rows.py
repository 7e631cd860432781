"""Rows of a task as items: templates, choices and examples, and what is said of rows that cannot be items."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rbpx.config.keys.tasks import chance_of
from rbpx.config.options import Chunk, FewshotDraw
from rbpx.config.text.dataset import DatasetConfig
from rbpx.config.text.items import parse
from rbpx.data.corpus import Document, text_hash
from rbpx.data.samples import examples_of, sample_here
from rbpx.errors import RbpxError
from rbpx.store.store import Store

CONF = Path(__file__).resolve().parents[2] / "conf" / "dataset"
# A row of each task, as the hub has it, and the pairs that lm-evaluation-harness makes of it, the right one last.
ROWS: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "lambada": ({"text": "She fed the dog"}, [("She fed the", " dog")]),
    "mmlu": (
        {"question": " Why? ", "subject": "high_school_physics", "choices": ["p", "q", "r", "s"], "answer": 3},
        [
            (
                "The following are multiple choice questions (with answers) about high school physics.\n\n"
                "Why?\nA. p\nB. q\nC. r\nD. s\nAnswer:",
                f" {letter}",
            )
            for letter in "ABCD"
        ],
    ),
    "arc_easy": (
        {"question": "Q?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"},
        [("Question: Q?\nAnswer:", " x"), ("Question: Q?\nAnswer:", " y")],
    ),
    "arc_challenge": (
        {"question": "Q?", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "B"},
        [("Question: Q?\nAnswer:", " x"), ("Question: Q?\nAnswer:", " y")],
    ),
    "hellaswag": (
        {
            "activity_label": "Baking",
            "ctx_a": "Mix. [header] How [title] Stir",
            "ctx_b": "the BOWL",
            "endings": ["turns  over [substeps].", "is mixed."],
            "label": "1",
        },
        # a double space becomes one, and none is left where brackets stood between two
        [("Baking: Mix. How. Stir The bowl", " turns over ."), ("Baking: Mix. How. Stir The bowl", " is mixed.")],
    ),
    "piqa": (
        {"goal": "Open a jar", "sol1": "smash it", "sol2": "turn the lid", "label": 1},
        [("Question: Open a jar\nAnswer:", " smash it"), ("Question: Open a jar\nAnswer:", " turn the lid")],
    ),
    "openbookqa": (
        {"question_stem": "The sun", "choices": {"text": ["is wet", "shines"], "label": ["A", "B"]}, "answerKey": " B"},
        [("The sun", " is wet"), ("The sun", " shines")],
    ),
    "csqa": (
        {"question": "Where? ", "choices": {"text": list("vwxyz"), "label": list("ABCDE")}, "answerKey": "E"},
        [("Question: Where?\nA. v\nB. w\nC. x\nD. y\nE. z\nAnswer:", f" {letter}") for letter in "ABCDE"],
    ),
    "boolq": (
        {"passage": "It is.", "question": "is it", "label": 1},
        [("It is.\nQuestion: is it?\nAnswer:", " no"), ("It is.\nQuestion: is it?\nAnswer:", " yes")],
    ),
    "winogrande": (
        {"sentence": "The cup beat the jug as the _ was big.", "option1": "cup", "option2": "jug", "answer": "2"},
        [("The cup beat the jug as the cup", " was big."), ("The cup beat the jug as the jug", " was big.")],
    ),
    "socialiqa": (
        {
            "context": "Kim left.",
            "question": "Why?",
            "answerA": "late",
            "answerB": "ill",
            "answerC": "bored",
            "label": "3",
        },
        [("Q: Kim left. Why?\nA:", f" {answer}") for answer in ("late", "ill", "bored")],
    ),
    "gsm8k_answer": ({"question": "1 + 1?", "answer": "2"}, [("Question: 1 + 1?\nAnswer:", " 2")]),
    "humaneval_solution": (
        {"prompt": "def f():\n", "canonical_solution": "    return 1\n"},
        [("def f():\n", "    return 1\n")],
    ),
    "hotpotqa_answer": ({"question": "Who?", "answer": "She"}, [("Question: Who?\nAnswer:", " She")]),
}


def written(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def read(path: str, seed: int = 0, limit: int = 1000, **keys: Any) -> list[Document]:
    sample = sample_here(DatasetConfig(path=path, **keys), limit, seed, Store(Path(path).parent / "store"))
    return sample.documents


def pairs(documents: list[Document]) -> list[tuple[str, str]]:
    return [(d.text[: d.part.n_context], d.text[d.part.n_context :]) for d in documents if d.part is not None]


TASKS = {
    path.stem: keys
    for path in sorted(CONF.glob("*.yaml"))
    if {"target", "choices"} & set(keys := yaml.safe_load(path.read_text()))
}
OF_ROWS = [name for name, keys in TASKS.items() if not str(keys.get("kind")).startswith("python_")]


@pytest.mark.parametrize("name", OF_ROWS)
def test_each_task_makes_the_pairs_of_the_harness_from_a_local_row(name: str, tmp_path: Path) -> None:
    row, expected = ROWS[name]
    keys = dict(TASKS[name])
    del keys["draw" if "draw" in keys else "kind"]
    documents = read(written(tmp_path / "rows.jsonl", row), **{"kind": "hub", **keys})
    in_order = sorted(documents, key=lambda d: (d.part.choice or 0) if d.part else 0)
    assert pairs(in_order) == expected
    assert documents[0].text == "".join(expected[-1])  # the right one comes first, under the number of its item
    assert [d.part.correct for d in in_order if d.part] == (
        [None] if len(expected) == 1 else [False] * (len(expected) - 1) + [True]
    )


def test_success_of_guessing_is_known_for_every_task() -> None:
    assert set(OF_ROWS) == set(ROWS)
    for name, keys in TASKS.items():
        assert keys["chance"] == 0 if "choices" not in keys else 0 < keys["chance"] <= 0.5, name
        if isinstance(keys.get("choices"), list):
            assert keys["chance"] == pytest.approx(1 / len(keys["choices"]))
        assert chance_of(name, None) == keys["chance"]


def test_subjects_of_mmlu_belong_to_four_domains() -> None:
    domains = yaml.safe_load((CONF / "mmlu.yaml").read_text())["domains"]
    assert {name: len(subjects) for name, subjects in domains.items()} == {
        "stem": 19,
        "humanities": 13,
        "social_sciences": 12,
        "other": 13,
    }
    assert len({subject for subjects in domains.values() for subject in subjects}) == 57


def test_examples_stand_before_each_item_and_never_hold_it(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", *({"q": f"{n}+1=", "a": str(n + 1)} for n in range(9)))
    keys: dict[str, Any] = {"context": ["q"], "target": "a"}
    plain, shown = read(path, **keys), read(path, fewshot=3, **keys)
    for bare, document in zip(plain, shown, strict=True):
        *examples, own = document.text.split("\n\n")
        assert own == bare.text
        assert len(examples) == 3
        assert bare.text not in examples
        assert document.text[document.part.n_context :] == pairs([bare])[0][1]
    first = read(path, fewshot=2, fewshot_seed=None, **keys)
    assert {tuple(d.text.split("\n\n")[:2]) for d in first if not d.text.endswith(("0+1=1", "1+1=2"))} == {
        ("0+1=1", "1+1=2")
    }
    others = read(path, fewshot=3, fewshot_seed=7, **keys)
    assert len({text_hash(documents) for documents in (plain, shown, first, others)}) == 4
    assert text_hash(shown) == text_hash(read(path, fewshot=3, **keys))


def test_examples_come_from_the_split_of_the_items_where_none_is_named() -> None:
    items = DatasetConfig(kind="hub", hub="a/b", context=["q"], target="a", split="validation", fewshot=2)
    assert examples_of(items)[0].split == "validation"
    assert examples_of(replace(items, fewshot_split="train"))[0].split == "train"


def test_each_item_may_have_examples_of_its_own_whatever_the_other_items_are(tmp_path: Path) -> None:
    rows = [{"q": f"{n}+1=", "a": str(n + 1)} for n in range(40)]
    path = written(tmp_path / "rows.jsonl", *rows)
    keys: dict[str, Any] = {"context": ["q"], "target": "a", "fewshot": 3, "fewshot_draw": FewshotDraw.item}
    shown = {document.source_id: document.text.split("\n\n") for document in read(path, **keys)}
    of_each = {name: tuple(examples) for name, (*examples, _) in shown.items()}
    assert all(len({*examples, own}) == 4 for *examples, own in shown.values()), "three others, and the item"
    assert len(set(of_each.values())) == 40
    n_shown = Counter(example for examples in of_each.values() for example in examples)
    assert len(n_shown) > 30, "of 40; 120 draws leave out 2 on average"
    for few in read(path, limit=7, **keys):
        assert tuple(few.text.split("\n\n")[:-1]) == of_each[few.source_id]
    others = read(path, fewshot_seed=7, **keys)
    assert {d.source_id: tuple(d.text.split("\n\n")[:-1]) for d in others} != of_each
    with pytest.raises(RbpxError, match=r"dataset.fewshot_draw=item a seed"):
        read(path, fewshot_seed=None, **keys)


def test_choices_of_an_item_have_the_same_examples_of_its_own(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "c": ["yes", "no"], "r": n % 2} for n in range(12)]
    keys: dict[str, Any] = {"context": ["q"], "choices": "c", "right": "r", "delimiter": " ", "fewshot": 2}
    drawn = read(written(tmp_path / "rows.jsonl", *rows), fewshot_draw=FewshotDraw.item, **keys)
    before: dict[str, set[str]] = {}
    for document in drawn:
        before.setdefault(document.source_id, set()).add(document.text[: document.part.n_context])
    assert {len(contexts) for contexts in before.values()} == {1}
    assert len({next(iter(contexts)).rpartition("\n\n")[0] for contexts in before.values()}) > 6


def test_examples_from_a_file_are_of_the_category_of_the_item(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", {"q": "x", "a": "1", "s": "law"}, {"q": "y", "a": "2", "s": "art"})
    dev = written(
        tmp_path / "dev.jsonl", *({"q": f"{s}{n}", "a": "3", "s": s} for n in range(4) for s in ("law", "art"))
    )
    keys: dict[str, Any] = {"context": ["q"], "target": "a", "delimiter": " ", "category": "s"}
    keys |= {"description": "On {s}.\n", "fewshot_path": dev, "fewshot_seed": None}
    by_category = {d.part.category: d.text for d in read(path, fewshot=2, **keys) if d.part is not None}
    assert by_category == {
        "law": "On law.\nlaw0 3\n\nlaw1 3\n\nx 1",
        "art": "On art.\nart0 3\n\nart1 3\n\ny 2",
    }
    with pytest.raises(RbpxError, match=r"more examples than there are for item \d: 4 of category"):
        read(path, fewshot=5, **keys)


def test_what_is_context_and_what_is_right_are_part_of_the_identity(tmp_path: Path) -> None:
    row = {"a": "x", "b": " y", "c": "x ", "d": "y", "e": ["y", "z"], "f": 0, "g": 1}
    path = written(tmp_path / "rows.jsonl", row)
    samples = [
        read(path, fields=["b"]),
        read(path, context=["a"], target="b"),
        read(path, context=["c"], target="d"),  # the same text with another border
        read(path, context=["c"], choices="e", right="f"),
        read(path, context=["c"], choices="e", right="g"),
    ]
    assert len({text_hash(documents) for documents in samples}) == len(samples)


@pytest.mark.parametrize(
    ("keys", "row", "said"),
    [
        ({"context": ["q"], "target": "b"}, {"q": "x", "a": "y"}, "no column 'b' for dataset.target (it has: q, a)"),
        ({"template": "Q {w}", "target": "a"}, {"q": "x", "a": "y"}, "no column 'w' for dataset.template"),
        (
            {"template": "{c[2]}", "target": "a"},
            {"c": ["x"], "a": "y"},
            "no column 'c[2]' for dataset.template",
        ),
        ({"context": ["q"], "target": "a"}, {"q": "x", "a": ""}, "has an empty target"),
        ({"context": ["q"], "target": "a"}, {"q": "x", "a": None}, "has None in 'a' (dataset.target), not a text"),
        (
            {"choices": "c", "right": "r"},
            {"c": ["x", "y"], "r": 2},
            "has '2' in 'r' (dataset.right)",
        ),
        ({"choices": "c", "right": "r"}, {"c": ["x", "y"], "r": -1}, "has '-1' in 'r'"),
        ({"choices": "c", "right": "r"}, {"c": ["x", "y"], "r": "B"}, "give the number of a choice, counted from 0"),
        (
            {"choices": "c", "right": "r", "labels": ["A", "B"]},
            {"c": ["x", "y"], "r": "C"},
            "2 choices by the labels",
        ),
        ({"choices": "c", "right": "r"}, {"c": "x", "r": 0}, "not a list of two texts or more"),
        ({"choices": "c", "right": "r"}, {"c": ["x", ""], "r": 0}, "has an empty choice 1"),
        ({"choices": ["c", "d"], "right": "r"}, {"c": "x", "r": 0}, "no column 'd' for dataset.choices"),
    ],
)
def test_a_row_that_cannot_be_an_item_is_named(
    keys: dict[str, Any], row: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "rows.jsonl", row)
    with pytest.raises(RbpxError) as problem:
        read(path, **keys)
    assert said in str(problem.value)
    assert str(problem.value).startswith(f"row 1 of {path} (line 1) ")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"template": "{q", "target": "a"}, "is not a template"),
        (
            {"template": "{q:shout}", "target": "a"},
            "or a function that is none of strip, capitalize",
        ),
        ({"template": "{}", "target": "a"}, "names {}, which is no path of a column"),
        ({"template": "{q!r}", "target": "a"}, "no column 'q!r'"),
        ({"context": ["q"]}, "is for items, which have a target"),
        ({"fewshot": 2}, "dataset.fewshot=2 is for items"),
        ({"choices": "c"}, "needs dataset.right=COLUMN"),
        ({"target": "a", "right": "r"}, "dataset.right=r is for items with choices"),
        ({"choices": ["x"], "right": "r"}, "is one choice; give two"),
        ({"choices": [False, "yes"], "right": "r"}, "was read as"),
        ({"choices": "c", "right": "r", "target": "a"}, "what follows a choice that stands in its context"),
        ({"choices": "c", "right": "r", "template": "{choice}"}, "give both, or neither"),
        ({"target": "a", "chunk": Chunk.line}, "is for texts"),
        ({"target": "a", "domains": {"x": ["y"]}}, "dataset.category=COLUMN"),
        ({"target": "a", "clean": "soap"}, "dataset.clean=soap is unknown"),
        ({"target": "a", "fewshot": -1}, "dataset.fewshot=-1 draws none"),
    ],
)
def test_keys_that_make_no_items_are_refused(keys: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(RbpxError) as problem:
        read(written(tmp_path / "rows.jsonl", {"q": "x", "a": "y", "c": ["x", "y"], "r": 0}), **keys)
    assert said in str(problem.value)


def test_a_typed_backslash_n_is_a_line_end_and_two_braces_are_one() -> None:
    assert "".join(map(str, parse("dataset.template", r"Q: {{x}}\nA:"))) == "Q: {x}\nA:"
