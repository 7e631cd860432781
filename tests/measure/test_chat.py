"""Chat templates: the assistant's tokens have the log-probabilities that a model gives them behind the rendered text.

The plain way is lm-evaluation-harness 0.4.13's with --apply_chat_template: the tokenizer renders the conversation up to
the assistant's turn, white space there belongs to the answer, and a loop in float64 adds up what the model says.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support import quiz
from tests.support.composed import here
from tests.support.stores import cell_records, columns_of, manifests, run_folders

TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>\n{{ message.content }}<|endoftext|>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>\n{% endif %}"
)
HEADLESS = TEMPLATE.partition("{% if")[0]  # as TEMPLATE, but never begins an answer
MUTE = "{% for message in messages %}{% if message.role == 'user' %}[{{ message.content }}]{% endif %}{% endfor %}"
CLOSED = MUTE.replace("{% endif %}", "{% else %} {{ message.content }}.{% endif %}")
NEAR = 1e-4  # nats of a whole target
Turns = list[tuple[str, str]]


@pytest.fixture(scope="module")
def model(tiny_checkpoint: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_checkpoint("gpt2", folder=tmp_path_factory.mktemp("chat") / "m", hidden_size=16, context=512)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def measured(store: Path, model: Path, path: Path, *words: str, chat: bool = True, check: int = 0) -> str:
    """What is said of a measurement, by a chat template if not otherwise said, in one line."""
    keys = ["model=hub", f"model.id={model}", "dataset=file", f"dataset.path={path}", *words]
    keys += ["model.chat=true"] if chat else []
    cwd = store.parent / "cwd"
    cwd.mkdir(exist_ok=True)
    return " ".join(here("measure", *keys, "--store", store, cwd=cwd, check=check).stderr.split())


def nats_by_hand(folder: Path, turns: Turns, answer: str) -> float:
    """The log-probability of an answer behind a conversation, in float64."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    messages = [{"role": role, "content": text} for role, text in turns]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    context = tokenizer(text.rstrip())["input_ids"]
    whole = tokenizer(text + answer)["input_ids"]
    with torch.inference_mode():
        logits = model(torch.tensor([whole])).logits[0]
    of_each = [
        float(logits[t - 1, whole[t]] - torch.logsumexp(logits[t - 1], dim=0)) for t in range(len(context), len(whole))
    ]
    return sum(of_each)


def nats_by_document(store: Path) -> list[float]:
    """The log-probability of each scored document of a store's only run, in order."""
    (run,) = run_folders(store).values()
    tokens = columns_of(run, "tokens")
    doc_id, logprob = tokens["doc_id"], tokens["logprob"].astype(np.float64)
    return [float(logprob[doc_id == each].sum()) for each in columns_of(run, "documents")["doc_id"]]


def expect(store: Path, model: Path, conversations: Sequence[tuple[Turns, str]]) -> None:
    theirs = [nats_by_hand(model, *each) for each in conversations]
    assert nats_by_document(store) == pytest.approx(theirs, abs=NEAR)


def test_targets_follow_examples_and_a_description_as_turns(model: Path, tmp_path: Path) -> None:
    rows = [
        {"q": "Who waits?", "a": "the one"},
        {"q": "Who reads?", "a": "the sea"},
        {"q": "Who carries?", "a": "a ship"},
    ]
    path = quiz.written(tmp_path / "pairs.jsonl", rows)
    own = ("dataset.context=[q]", "dataset.target=a", "dataset.delimiter=' '", "dataset.description='Ships of {q}. '")
    examples = ("dataset.fewshot=1", "dataset.fewshot_seed=null", "dataset.draw=first")
    measured(tmp_path / "s", model, path, *own, *examples, "model.system='Say little.'")
    (run,) = run_folders(tmp_path / "s").values()
    order = [int(name) - 1 for name in columns_of(run, "documents")["source_id"]]
    conversations = []
    for row in order:
        shown = rows[1] if row == 0 else rows[0]  # the first row that is not itself
        system = f"Say little.\n\nShips of {rows[row]['q']}. "
        turns = [("system", system), ("user", shown["q"]), ("assistant", shown["a"]), ("user", rows[row]["q"])]
        conversations.append((turns, rows[row]["a"]))
    expect(tmp_path / "s", model, conversations)


def test_choices_follow_their_question_without_the_delimiter(model: Path, tmp_path: Path) -> None:
    path = quiz.written(tmp_path / "choices.jsonl", [{"q": "Which one?", "c": ["salt", "a rope", "no sea"], "r": 1}])
    keys = ("dataset.template='Q: {q}'", "dataset.choices=c", "dataset.right=r", "dataset.delimiter=' '")
    measured(tmp_path / "s", model, path, *keys)
    turns = [("user", "Q: Which one?")]  # the right choice stands first
    expect(tmp_path / "s", model, [(turns, choice) for choice in ("a rope", "salt", "no sea")])


def test_what_follows_a_choice_is_scored_behind_each_question(model: Path, tmp_path: Path) -> None:
    path = quiz.written(tmp_path / "blanks.jsonl", [{"s": "reads twice", "c": ["the sea", "a ship"], "r": 0}])
    keys = ("dataset.template='So {choice}'", "dataset.target=s", "dataset.choices=c", "dataset.right=r")
    measured(tmp_path / "s", model, path, *keys)
    expect(tmp_path / "s", model, [([("user", f"So {c}")], "reads twice") for c in ("the sea", "a ship")])


def test_each_message_of_the_assistant_is_scored_behind_those_before_it(model: Path, tmp_path: Path) -> None:
    turns = [
        ("system", "Be brief."),
        ("user", "Who?"),
        ("assistant", "the sea"),
        ("user", "Why?"),
        ("assistant", "salt"),
    ]
    row = {"messages": [{"role": role, "content": text} for role, text in turns]}
    path = quiz.written(tmp_path / "talk.jsonl", [row])
    measured(tmp_path / "s", model, path, "dataset.messages=messages", "seed=3")
    (run,) = run_folders(tmp_path / "s").values()
    names = columns_of(run, "documents")["source_id"].tolist()
    assert sorted(names) == ["1:3", "1:5"]
    expect(tmp_path / "s", model, [(turns[: at - 1], turns[at - 1][1]) for at in (int(n.split(":")[1]) for n in names)])


def test_template_and_system_text_make_another_run_and_another_group(model: Path, tmp_path: Path) -> None:
    path = quiz.written(tmp_path / "pairs.jsonl", [{"q": "Who?", "a": "the sea"}])
    keys, store = ("dataset.context=[q]", "dataset.target=a"), tmp_path / "s"
    measured(store, model, path, *keys)
    measured(store, model, path, *keys, "model.system=Hm")
    measured(store, model, path, *keys, chat=False)
    assert sorted(facts["bos"] for facts in manifests(store).values()) == [
        "tokenizer", "tokenizer with chat template", "tokenizer with chat template and system text Hm"
    ]  # fmt: skip
    assert {record["config"]["model"]["chat"] for record in cell_records(store)} == {True, False}
    (before,) = (name for name, facts in manifests(store).items() if facts["bos"] == "tokenizer with chat template")
    try:
        (model / "chat_template.jinja").write_text(TEMPLATE.replace("\n", " "))
        measured(tmp_path / "t", model, path, *keys)
    finally:
        (model / "chat_template.jinja").write_text(TEMPLATE)
    assert before not in manifests(tmp_path / "t")


@pytest.mark.parametrize(
    ("template", "says"),
    [
        (None, "needs a tokenizer with a chat template, but this one has none"),
        (HEADLESS, "adds no assistant turn where add_generation_prompt asks for one"),
        (MUTE, "adds no assistant turn with its text"),
        (
            "{{ raise_exception('Only alternating roles') }}",
            "refuses a conversation of user (TemplateError: Only alternating roles)",
        ),
    ],
)
def test_a_template_that_cannot_serve_is_one_line(model: Path, tmp_path: Path, template: str | None, says: str) -> None:
    path = quiz.written(tmp_path / "pairs.jsonl", [{"q": "Who?", "a": "the sea"}])
    file = model / "chat_template.jinja"
    file.unlink()
    try:
        if template is not None:
            file.write_text(template)
        said = measured(tmp_path / "s", model, path, "dataset.context=[q]", "dataset.target=a", check=2)
    finally:
        file.write_text(TEMPLATE)
    assert says in said
    assert not run_folders(tmp_path / "s")


def test_a_template_whose_user_turn_ends_where_the_answer_begins_is_taken(model: Path, tmp_path: Path) -> None:
    path = quiz.written(tmp_path / "pairs.jsonl", [{"q": "Who?", "a": "the sea"}])
    try:
        (model / "chat_template.jinja").write_text(CLOSED)
        measured(tmp_path / "s", model, path, "dataset.context=[q]", "dataset.target=a")
        expect(tmp_path / "s", model, [([("user", "Who?")], "the sea")])
    finally:
        (model / "chat_template.jinja").write_text(TEMPLATE)


@pytest.mark.parametrize(
    ("row", "words", "says"),
    [
        ({"text": "the sea"}, [], "model.chat=true renders conversations, and dataset rows has plain texts"),
        ({"m": []}, ["dataset.messages=m"], "has no message of the role assistant"),
        ({"m": [{"role": "assistant", "content": ""}]}, ["dataset.messages=m"], "as message 1 of 'm' ("),
        ({"m": "hello"}, ["dataset.messages=m"], "not a record of a role and a content that is text"),
        ({"m": [{"role": "assistant", "content": [{"text": "x"}]}]}, ["dataset.messages=m"], "as message 1 of 'm'"),
        ({"m": []}, ["dataset.messages=m", "dataset.fewshot=1"], "and the rows of rows are conversations; drop it"),
        ({"m": []}, ["dataset.messages=n"], "has no column 'n' for dataset.messages"),
        ({"text": "x"}, ["model.system=Hm"], "model.system=Hm is for a chat template; add"),
    ],
)  # fmt: skip
def test_rows_that_are_no_conversations_are_one_line(
    model: Path, tmp_path: Path, row: dict[str, Any], words: list[str], says: str
) -> None:
    path, chat = quiz.written(tmp_path / "rows.jsonl", [row]), words != ["model.system=Hm"]
    assert says in measured(tmp_path / "s", model, path, *words, chat=chat, check=2)
