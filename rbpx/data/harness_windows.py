"""Cuts documents into windows as lm-evaluation-harness 0.4 does, so that results agree with it.

An item: white space at the end of its context belongs to its target. The target's tokens are those of context and
target together, without as many as the context alone has. Tokens beyond the window are cut off at the left. Where no
token of the target is left, the harness stops; here the item is left out with all of its choices, or refused. The model
reads all tokens but the last, so a window of W tokens predicts W and has W + 1 ids.

A text: every token is scored, the first one predicted from the prefix (the BOS, else the EOS). Each later window begins
with the last token of the one before it, and the last window extends back to its full length.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rbpx.config.options import Bos, Joined
from rbpx.data.corpus import Document
from rbpx.data.windows import Window, encoded, ids_around, token_bytes
from rbpx.errors import RbpxError


def cut_as_harness(
    documents: Sequence[Document],
    tokenizer: Any,
    window: int,
    bos: Bos = Bos.tokenizer,
    joined: Joined = Joined.skip,
) -> list[Window]:
    """The windows of documents, in their order: one per target or choice, as many as needed per text.

    Raises:
        RbpxError: a target has no token of its own and is refused, or exceeds the window; or the tokenizer has no BOS
            or EOS, and a text or a target without a context needs one.
    """
    encoder = _Encoder(tokenizer, bos)
    # Where each target begins, with white space before it; 0 for a text.
    borders = [0 if d.part is None else len(d.text[: d.part.n_context].rstrip()) for d in documents]
    contexts = dict.fromkeys(d.text[:at] for d, at in zip(documents, borders, strict=True) if at)
    encoded_contexts = dict(zip(contexts, encoder.encode(list(contexts)), strict=True))
    # A target without a context is encoded without special tokens; the prefix replaces them.
    bare = [document.part is not None and not at for document, at in zip(documents, borders, strict=True)]
    whole = encoder.encode([document.text for document in documents], bare)
    windows = []
    for document, at, (ids, offsets) in zip(documents, borders, whole, strict=True):
        if document.part is None:
            windows += _of_text(document, encoder.prefix(document), ids, offsets, window)
            continue
        if at:
            context, places = encoded_contexts[document.text[:at]]
            target = ids[len(context) :]
        else:
            prefix = encoder.prefix(document)
            context, target = ([prefix], ids) if ids[:1] != [prefix] else (ids[:1], ids[1:])
            places = [(0, 0)]
        if not target and joined is Joined.refuse:
            raise RbpxError(
                f"{_which(document)} has the target {document.text[at:][:40]!r}, which the tokenizer joins to its "
                "context, so that no token is the target's alone; begin the target with a space, or leave the row out, "
                f"as dataset.joined={Joined.skip.value} does"
            )
        n_bytes_T = token_bytes(document.text, offsets)
        windows.append(_of_item(document, at, context, places, target, n_bytes_T, window))
    item_of = {document.doc_id: document.part.item for document in documents if document.part is not None}
    left_out = {item_of[each.doc_id] for each in windows if each.doc_id in item_of and not each.n_scored}
    return [
        replace(each, scored=np.zeros_like(each.scored), n_bytes_scored=0)
        if item_of.get(each.doc_id) in left_out
        else each
        for each in windows
    ]


def _which(document: Document) -> str:
    choice = None if document.part is None else document.part.choice
    return f"item {document.source_id}" + ("" if choice is None else f", choice {choice},")


def _of_item(
    document: Document,
    border: int,
    context: list[int],
    places: list[tuple[int, int]],
    target: list[int],
    n_bytes_T: npt.NDArray[np.int64],
    window: int,
) -> Window:
    if len(target) > window:
        raise RbpxError(
            f"{_which(document)} has a target of {len(target):,} tokens, but the model reads {window:,} at once, which "
            "leaves no room for the context; take a model with a longer window, or leave the row out"
        )
    ids = [*context, *target]
    start = max(len(ids) - window - 1, 0)
    cut_characters = min(max(end for _, end in places[:start]), border) if start else 0
    scored_T = np.arange(start, len(ids)) >= len(context)
    before, bytes_T = len(n_bytes_T) - len(target), np.zeros(len(scored_T), np.int64)
    bytes_T[scored_T] = n_bytes_T[before:]
    return Window(
        doc_id=document.doc_id,
        ids=np.asarray(ids[start:], np.int32),
        scored=scored_T,
        n_bytes=_n_bytes(document.text[cut_characters:]),
        n_bytes_scored=_n_bytes(document.text[border:]),
        start=start,
        first_byte=int(n_bytes_T[:before].sum()),
        bytes_T=bytes_T,
        ends_in_label=True,
    )


def _of_text(
    document: Document, prefix: int, ids: list[int], offsets: list[tuple[int, int]], window: int
) -> list[Window]:
    ids_T = np.asarray([prefix, *ids], np.int32)
    n_bytes_T = np.concatenate([[0], token_bytes(document.text, offsets)]).astype(np.int64)
    windows, done = list[Window](), 1  # the prefix is never predicted
    while done < len(ids_T):
        end = min(done + window, len(ids_T))
        begin = max(end - window - 1, 0)
        scored_t = np.arange(begin, end) >= done
        n_bytes = int(n_bytes_T[done:end].sum())
        first, n_bytes_t = int(n_bytes_T[:begin].sum()), n_bytes_T[begin:end]
        windows.append(
            Window(document.doc_id, ids_T[begin:end], scored_t, n_bytes, n_bytes, begin, first, n_bytes_t, True)
        )
        done = end
    return windows or [Window(document.doc_id, ids_T, np.zeros(1, bool), 0, 0, bytes_T=np.zeros(1, np.int64))]


def _n_bytes(text: str) -> int:
    return len(text.encode())


class _Encoder:
    def __init__(self, tokenizer: Any, bos: Bos) -> None:
        self._tokenizer, self._bos = tokenizer, bos
        prefix = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        self._prefix: int | None = prefix
        self._begin = None if prefix is None else str(tokenizer.decode(prefix))

    def prefix(self, document: Document) -> int:
        """The id from which the first token of a text, or of a target without a context, is predicted."""
        if self._prefix is None:
            what = f"document {document.doc_id}" if document.part is None else f"item {document.source_id}"
            raise RbpxError(
                f"{what} has no context, and the tokenizer neither a BOS nor an EOS to predict its first token from; "
                "give it a context, or use protocol=rolling for a text"
            )
        return self._prefix

    def encode(
        self, texts: Sequence[str], bare: Sequence[bool] | None = None
    ) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Ids and offsets of each text; bare texts and those that begin with the prefix get no special tokens.

        Those that the tokenizer appends are dropped: they would become context of a target, or its last token.
        """
        plain = [
            (bare is not None and bare[i]) or (self._begin is not None and text.startswith(self._begin))
            for i, text in enumerate(texts)
        ]
        of_each: list[tuple[list[int], list[tuple[int, int]]]] = [([], [])] * len(texts)
        for is_plain in (False, True):
            chosen = [i for i, each in enumerate(plain) if each is is_plain]
            if chosen:
                bos = Bos.none if is_plain else self._bos
                ids, offsets = encoded([texts[i] for i in chosen], self._tokenizer, None, bos)
                n_behind = len(ids_around(self._tokenizer)[1]) if bos is Bos.tokenizer else 0
                for i, own, places in zip(chosen, ids, offsets, strict=True):
                    of_text = slice(len(own) - n_behind)
                    of_each[i] = own[of_text], places[of_text]
        return of_each
