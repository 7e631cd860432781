"""Documents in, windows of token ids out, with the positions that are scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rbpx.config import Bos
from rbpx.corpus import Document
from rbpx.errors import RbpxError

SHORTEST = 2  # tokens; the first one is never predicted


@dataclass(frozen=True, eq=False)
class Window:
    """One stretch of one document that the model reads at once.

    Attributes:
        doc_id: the document.
        ids: int32 [T], token ids with the special tokens that the tokenizer adds.
        scored: bool [T], whether position t is predicted and counted; never true at t = 0.
        n_bytes: bytes (UTF-8) of the text that the window covers.
        n_bytes_scored: those that its scored tokens stand for; without the first token, specials and what follows them.
    """

    doc_id: int
    ids: npt.NDArray[np.int32]
    scored: npt.NDArray[np.bool_]
    n_bytes: int
    n_bytes_scored: int

    @property
    def n_scored(self) -> int:
        """Number of scored positions."""
        return int(self.scored.sum())


def scored_positions(ids: npt.NDArray[np.int32], special_ids: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Position t counts if neither its label ids[t] nor its input ids[t - 1] is special (arXiv 2510.20387, 4)."""
    plain = ~np.isin(ids, list(special_ids))
    scored = np.zeros(len(ids), bool)
    scored[1:] = plain[1:] & plain[:-1]
    return scored


def scored_bytes(text: str, offsets: Sequence[tuple[int, int]], scored: Sequence[bool]) -> int:
    """Bytes (UTF-8) of the text that the scored tokens stand for.

    A token stands for what lies between the end of those before it and its own, as some tokenizers trim white space off
    their offsets. A character that several tokens make up counts with the first of them.

    Args:
        text: of the document.
        offsets: characters [begin, end) of each token; the tokenizer's own specials have (0, 0).
        scored: whether each token is predicted and counted.
    """
    reached, n_bytes = 0, 0
    for (_, end), counts in zip(offsets, scored, strict=True):
        if counts and end > reached:
            n_bytes += len(text[reached:end].encode("utf-8", "surrogatepass"))
        reached = max(reached, end)
    return n_bytes


def acting_bos(tokenizer: Any, bos: Bos) -> Bos:
    """The BOS policy as it acts: `tokenizer` where another asks for what the tokenizer does by itself, as OPT's add.

    Raises:
        RbpxError: a BOS is asked of a tokenizer that has none.
    """
    own, asked = (_encoded(["a"], tokenizer, None, policy)[0] for policy in (Bos.tokenizer, bos))
    return Bos.tokenizer if asked == own else bos


def cut_windows(documents: Sequence[Document], tokenizer: Any, window: int, bos: Bos = Bos.tokenizer) -> list[Window]:
    """The `paper` protocol: each document's first `window` tokens, special ones included, as one window.

    Raises:
        RbpxError: a BOS is asked of a tokenizer that has none.
    """
    if not documents:
        return []
    special = tokenizer.all_special_ids
    windows = []
    texts = [document.text for document in documents]
    for document, ids, offsets in zip(documents, *_encoded(texts, tokenizer, window, bos), strict=True):
        ids_T = np.asarray(ids, np.int32)
        covered = document.text[: max((end for _, end in offsets), default=0)]
        n_bytes = len(covered.encode("utf-8", "surrogatepass"))
        scored_T = scored_positions(ids_T, special)
        n_bytes_scored = scored_bytes(document.text, offsets, scored_T.tolist())
        windows.append(Window(document.doc_id, ids_T, scored_T, n_bytes, n_bytes_scored))
    return windows


def _encoded(
    texts: Sequence[str], tokenizer: Any, window: int | None, bos: Bos
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """Token ids and offsets of each text; those of special tokens that are put before it are (0, 0)."""
    first = [tokenizer.bos_token_id] if bos is Bos.add else []
    if first == [None]:
        raise RbpxError(
            "model.bos=add needs a tokenizer with a BOS token, and this one has none; use model.bos=tokenizer"
        )
    tokenizer.truncation_side = "right"  # some families cut the beginning away
    encoded = tokenizer(
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
    before = [(0, 0)] * len(first)
    return [first + ids for ids in encoded["input_ids"]], [before + places for places in encoded["offset_mapping"]]
