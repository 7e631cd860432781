"""Cuts documents into windows of token ids, and marks the positions that are scored."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from rbpx.config.options import Bos
from rbpx.data.breaks import break_rule
from rbpx.data.corpus import Document
from rbpx.errors import RbpxError

_CHARACTERS = 8  # per token (4 in English): enough for most texts to fill a window
_LEAST_READ = 256  # characters
_JOINED = re.compile(r"\S+")  # between two tokens; white space there belongs to the later one


@dataclass(frozen=True, eq=False)
class Window:
    """A span of a document that the model reads at once.

    Attributes:
        ids: [T], with the special tokens that the tokenizer adds.
        scored: [T], whether position t is predicted and counted; never true at t = 0, nor in two windows.
        n_bytes: bytes (UTF-8) of the window's text, without those of the windows before it.
        n_bytes_scored: those of its scored tokens.
        start: index of its first token in the document; first_byte the offset of its text.
        bytes_T: of each token, by `token_bytes`; consecutive.
        ends_in_label: whether its last token is predicted but not read.
    """

    doc_id: int
    ids: npt.NDArray[np.int32]
    scored: npt.NDArray[np.bool_]
    n_bytes: int
    n_bytes_scored: int
    start: int = 0
    first_byte: int = 0
    bytes_T: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    ends_in_label: bool = False

    @property
    def n_read(self) -> int:
        """Number of tokens that the model reads."""
        return len(self.ids) - self.ends_in_label

    @property
    def n_scored(self) -> int:
        """Number of scored positions."""
        return int(self.scored.sum())

    @property
    def scored_bytes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Offset in the document and length of each scored token's text: bytes, each [n_scored]."""
        begin_T = self.first_byte + np.cumsum(self.bytes_T) - self.bytes_T
        return begin_T[self.scored], self.bytes_T[self.scored]


def scored_positions(ids: npt.NDArray[np.int32], special_ids: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Position t counts if neither its label ids[t] nor its input ids[t - 1] is special (arXiv 2510.20387, 4)."""
    plain = ~np.isin(ids, list(special_ids))
    scored = np.zeros(len(ids), bool)
    scored[1:] = plain[1:] & plain[:-1]
    return scored


def token_bytes(text: str, offsets: Sequence[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """Bytes (UTF-8) of the text that each token covers, int64 [T].

    A token covers the text from the end of the tokens before it to its own end, because some tokenizers leave white
    space out of their offsets. A character of several tokens counts with the first. Specials of the tokenizer are at
    (0, 0).
    """
    reached, n_bytes_T = 0, np.zeros(len(offsets), np.int64)
    for t, (_, end) in enumerate(offsets):
        if end > reached:
            n_bytes_T[t] = len(text[reached:end].encode())
            reached = end
    return n_bytes_T


def spans(n_tokens: int, window: int, stride: int | None) -> list[tuple[int, int]]:
    """[begin, end) of each window of a document: the first one alone, or one every `stride` tokens."""
    if stride is None:
        return [(0, min(window, n_tokens))]
    last = max(n_tokens - window, 0)
    begins = range(0, last + stride, stride)
    return [(begin, min(begin + window, n_tokens)) for begin in begins]


def acting_bos(tokenizer: Any, bos: Bos) -> Bos:
    """The effective BOS policy: `tokenizer` where `bos` is its default, as `add` for OPT; RbpxError if it has none."""
    default_ids, ids = (encoded(["a"], tokenizer, None, policy)[0] for policy in (Bos.tokenizer, bos))
    return Bos.tokenizer if ids == default_ids else bos


def prefix_id(tokenizer: Any, prefix: str, n_rows: int) -> int:
    """The id of the token that begins each window: bos, eos, an id below `n_rows`, or a text that is one token.

    Raises:
        RbpxError: it is not one token of the tokenizer and the model.
    """
    of_name = {"bos": tokenizer.bos_token_id, "eos": tokenizer.eos_token_id}
    text, n_ids = prefix.replace("\\n", "\n"), min(len(tokenizer), n_rows)
    if prefix in of_name:
        ids, found = [of_name[prefix]], f"has no {prefix.upper()}"
    elif prefix.isdecimal():
        ids, found = [int(prefix)], f"has ids from 0 to {n_ids - 1}"
    else:
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        found = f"cuts it into {len(ids)}"
        if tokenizer.unk_token_id in ids and text != tokenizer.unk_token:
            ids, found = [], "does not know it"
    if len(ids) != 1 or ids[0] is None or ids[0] >= n_ids:
        raise RbpxError(
            f"protocol.prefix={prefix} is not one token: the tokenizer {found}; give bos, eos, the text of a token, or "
            "its id"
        )
    return int(ids[0])


def ids_around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before a text (as BOS) and after it (as EOS)."""
    plain, whole = (tokenizer("a", add_special_tokens=adds, verbose=False)["input_ids"] for adds in (False, True))
    begin = next(at for at in range(len(whole)) if whole[at : at + len(plain)] == plain)
    return whole[:begin], whole[begin + len(plain) :]


def cut_windows(
    documents: Sequence[Document],
    tokenizer: Any,
    window: int,
    bos: Bos = Bos.tokenizer,
    stride: int | None = None,
    unscored: Collection[int] = (),
    prefix: int | None = None,
) -> list[Window]:
    """Each document's first `window` tokens, special ones included; with a stride, all of its windows.

    A token is scored once, in the first window that contains it, with everything before it there as context. A prefix
    begins the document and replaces the first token of each later window, which else begins with the document's own;
    the first token of the text itself is never scored. `unscored` are ids, in addition to the special ones, that are
    neither input nor label of a scored token.

    Raises:
        RbpxError: a BOS is requested of a tokenizer that has none.
    """
    if not documents:
        return []
    special = [*tokenizer.all_special_ids, *unscored]
    n_behind = len(ids_around(tokenizer)[1]) if bos is Bos.tokenizer else 0
    windows = []
    texts = [document.text for document in documents]
    read = _first_tokens(texts, tokenizer, window, bos) if stride is None else encoded(texts, tokenizer, None, bos)
    for document, ids, offsets in zip(documents, *read, strict=True):
        first = [] if prefix is None else [prefix]
        ids_T = np.asarray(first + ids, np.int32)
        scored_T = scored_positions(ids_T, special)
        scored_T[: 2 * len(first)] = False
        n_bytes_T = token_bytes(document.text, [(0, 0)] * len(first) + offsets)
        scored_T[len(scored_T) - n_behind :] = False  # also where the tokenizer does not mark them as special
        done = 0
        for begin, end in spans(len(ids_T), window, stride):
            new_T = np.arange(begin, end) >= done
            scored_t, n_bytes_t = scored_T[begin:end] & new_T, n_bytes_T[begin:end]
            n_bytes, n_bytes_scored = int(n_bytes_t[new_T].sum()), int(n_bytes_t[scored_t].sum())
            first_byte = int(n_bytes_T[:begin].sum())
            ids_t = ids_T[begin:end].copy()
            ids_t[: len(first)] = first
            windows.append(
                Window(document.doc_id, ids_t, scored_t, n_bytes, n_bytes_scored, begin, first_byte, n_bytes_t)
            )
            done = end
    return windows


def authors_padding(tokenizer: Any) -> int:
    """The id that the RBP paper's code pads windows with: the tokenizer's pad, or else its eos; 0 counts as unset.

    Raises:
        RbpxError: the tokenizer has neither.
    """
    token_id = tokenizer.pad_token_id or tokenizer.eos_token_id
    if token_id is None:
        raise RbpxError("protocol=official pads windows with the pad or eos token, but this tokenizer has neither")
    return int(token_id)


def _first_tokens(
    texts: Sequence[str], tokenizer: Any, window: int, bos: Bos
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """As `encoded`, reading only as much of a long text as needed; all of it where no place to cut is sure."""
    ids: list[list[int]] = [[]] * len(texts)
    offsets: list[list[tuple[int, int]]] = [[]] * len(texts)
    n_characters = max(_LEAST_READ, _CHARACTERS * window)
    rule = break_rule(tokenizer) if any(len(text) > n_characters for text in texts) else None
    left = list(range(len(texts)))
    while left:
        beginnings = [_beginning(texts[i], n_characters, rule) for i in left]
        for i, of_one, places in zip(left, *encoded(beginnings, tokenizer, window, bos), strict=True):
            ids[i], offsets[i] = of_one, places
        read = zip(left, beginnings, strict=True)
        left = [i for i, beginning in read if len(ids[i]) < window and len(beginning) < len(texts[i])]
        n_characters *= 4
    return ids, offsets


def _beginning(text: str, n_characters: int, rule: re.Pattern[str] | None) -> str:
    place = None if rule is None or len(text) <= n_characters else rule.search(text, n_characters)
    return text if place is None else text[: place.start()]


def encoded(
    texts: Sequence[str], tokenizer: Any, window: int | None, bos: Bos
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """Token ids of each text, at most `window`, and the characters [begin, end) that each stands for.

    Special tokens have (0, 0). The last token of a whole text reaches to its end.

    Raises:
        RbpxError: a BOS is to be added, and the tokenizer has none.
    """
    first = [tokenizer.bos_token_id] if bos is Bos.add else []
    if first == [None]:
        raise RbpxError(
            "model.bos=add needs a tokenizer with a BOS token, but this one has none; use model.bos=tokenizer"
        )
    tokenizer.truncation_side = "right"  # some families cut off the beginning by default
    read = tokenizer(
        list(texts),
        add_special_tokens=bos is Bos.tokenizer,
        truncation=window is not None,
        max_length=None if window is None else window - len(first),
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        return_offsets_mapping=True,
        verbose=False,
    )
    is_blank = cache(lambda token_id: not tokenizer.decode([token_id]).strip())
    before = [(0, 0)] * len(first)
    places = [before + _places(text, each, is_blank) for text, each in zip(texts, read.encodings, strict=True)]
    return [first + ids for ids in read["input_ids"]], places


def _places(text: str, read: Any, is_blank: Callable[[int], bool]) -> list[tuple[int, int]]:
    """The characters of each token of `read`, a tokenizer's Encoding.

    A marker of a beginning that is a token of its own (Llama 2's before Chinese) has the offsets of the token behind
    it, but stands for none. What normalisation joined to a token (NFC an accent) is left out of its offsets.
    """
    places: list[tuple[int, int]] = list(read.offsets)
    cut_off = read.overflowing[0].offsets if read.overflowing else []
    of_text = [t for t, (begin, end) in enumerate(places) if end > begin]
    behind = [begin for begin, end in [*places, *cut_off] if end > begin][1:]
    for t, begin_behind in zip_longest(of_text, behind[: len(of_text)]):
        begin, end = places[t]
        if begin_behind is None:
            places[t] = begin, len(text)
        elif begin_behind <= begin and is_blank(read.ids[t]):
            places[t] = begin, begin
        elif (joined := _JOINED.match(text, end, begin_behind)) is not None:
            places[t] = begin, joined.end()
    return places
