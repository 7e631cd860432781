"""The pipeline of the paper's authors by its description, and measurements held against it."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import torch

from rbpx.data.corpus import draw, read_file
from tests.support.checkpoints import TINY_TEXT
from tests.support.commands import here
from tests.support.stores import manifests, write_jsonl

THEIRS = 512  # tokens of a window


def rows_of(store: Path) -> list[tuple[int, ...]]:
    """(doc_id, position, token_id, greater, ties) of the only run of a store."""
    (run,) = (store / "runs").glob("[!_]*")
    table = pq.read_table(run / "tokens.parquet")
    names = ("doc_id", "position", "token_id", "greater", "ties")
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def opened(folder: Path) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder, as transformers reads them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(folder)


class Authors(NamedTuple):
    """What the authors' pipeline makes of texts.

    Attributes:
        rows: document, position, label, strict rank.
        behind: whether the document has the pad id before that label.
        hits: of each k, whether the label is among the k most probable.
    """

    rows: list[tuple[int, int, int, int]]
    behind: list[bool]
    hits: dict[int, list[bool]]


def as_the_authors_do(folder: Path, texts: list[str], masks_inside: bool = True) -> Authors:
    """Their pipeline by its description, one document after another.

    Pad to 512, inputs are all but the last token and labels all but the first; the pad id is masked wherever it stands,
    or behind the text alone if not `masks_inside`; a position counts where neither is the pad id nor special; ranks are
    those above plus one; RBP_k looks the label up among the k most probable.
    """
    model, tokenizer = opened(folder)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    pad = tokenizer.pad_token_id or tokenizer.eos_token_id
    found = Authors([], [], {k: [] for k in (1, 10, 100)})
    for document, text in enumerate(texts):
        encoded = tokenizer(text, truncation=True, max_length=THEIRS, padding="max_length", return_tensors="pt")
        mask = encoded["input_ids"].ne(pad).long() if masks_inside else encoded["attention_mask"]
        with torch.no_grad():
            logits = model(encoded["input_ids"], attention_mask=mask).logits[0]
        probabilities = torch.softmax(logits, -1)
        ids = encoded["input_ids"][0].tolist()
        assert len(ids) == THEIRS
        for position, (read, label) in enumerate(pairwise(ids), 1):
            if pad in (read, label) or {read, label} & set(tokenizer.all_special_ids):
                continue
            above = int((logits[position - 1] > logits[position - 1, label]).sum())
            found.rows.append((document, position, label, above + 1))
            found.behind.append(pad in ids[:position])
            for k, hits in found.hits.items():
                hits.append(label in torch.topk(probabilities[position - 1], k).indices.tolist())
    return found


def check_against_the_authors(folder: Path, words: list[object], texts: list[str], store: Path, cwd: Path) -> Authors:
    """Measure by `protocol=official`: the authors' ranks but for what is behind a pad id inside a text."""
    theirs, otherwise = (as_the_authors_do(folder, texts, masks_inside=inside) for inside in (True, False))
    asked = ("measure", "model=hub", f"model.id={folder}", "protocol=official", *words, f"store={store}")
    said = here(*asked, cwd=cwd, check=0).stderr
    measured_rows = rows_of(store)
    assert [(d, p, token) for d, p, token, _, _ in measured_rows] == [row[:3] for row in theirs.rows]
    # The authors' batch is padded: a logit may round otherwise, by the contract for 1 token in 1,000.
    moved = sum(g + 1 != row[3] for (_, _, _, g, _), row in zip(measured_rows, otherwise.rows, strict=True))
    assert moved <= len(measured_rows) / 1000
    before = [at for at, behind in enumerate(theirs.behind) if not behind]
    moved = sum(measured_rows[at][3] + 1 != theirs.rows[at][3] for at in before)
    assert moved <= len(before) / 1000
    for k, hits in theirs.hits.items():
        share = np.mean([hits[at] for at in before])
        of_run = [measured_rows[at][3:] for at in before]
        strict, with_ties = (np.mean([g + t * sign < k for g, t in of_run]) for sign in (0, 1))
        assert with_ties - moved / len(before) <= share <= strict + moved / len(before)
    documents = {row[0] for row, behind in zip(theirs.rows, theirs.behind, strict=True) if behind}
    counted = f"{len(documents)} of {len(texts)} documents contain"
    assert (counted in said) == (f"ranks of the {sum(theirs.behind):,} tokens after it may differ" in said)
    assert (counted in said) == bool(documents)
    return theirs


def check_padding_inside(folder: Path, texts: Sequence[str], place: Path, cwd: Path) -> None:
    """Behind a pad id inside a text the authors' ranks are others, and how many these are is said."""
    inside = f"{TINY_TEXT[3]}<pad>{TINY_TEXT[0]}<|endoftext|>{TINY_TEXT[7]}"
    path = write_jsonl(place / "texts.jsonl", *texts, inside)
    drawn = [document.text for document in draw(read_file(path), 1000, 42)]
    theirs = check_against_the_authors(folder, ["dataset=file", f"dataset.path={path}"], drawn, place / "s", cwd)
    differ = [row[3] != ours[3] + 1 for row, ours in zip(theirs.rows, rows_of(place / "s"), strict=True)]
    assert sum(differ) > sum(theirs.behind) / 10 > 0
    (facts,) = manifests(place / "s").values()
    inner = facts["inner_padding"]
    is_opt = json.loads((folder / "config.json").read_text())["model_type"] == "opt"
    assert inner["text"] == ("<pad>" if is_opt else "<|endoftext|>")
    assert inner["tokens"] == sum(theirs.behind)
