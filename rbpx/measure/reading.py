"""A cell and its loaded model in; how its documents are read out: windows, BOS, which of the vocabulary counts."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace

from rbpx.config.grid import Cell
from rbpx.config.options import Bos, Padding
from rbpx.data.corpus import Document, text_hash
from rbpx.data.windows import Window, acting_bos, authors_padding, cut_windows
from rbpx.errors import RbpxError
from rbpx.models.head import without_padding
from rbpx.models.load import LoadedModel
from rbpx.ties import OFFICIAL

_MOST_CUT = 8  # texts of which the windows are kept: the sizes of a family have one tokenizer
_cut: dict[Hashable, list[Window]] = {}  # by this process


@dataclass(frozen=True, eq=False)
class Reading:
    """How a model reads documents; choices as they act, so that two which come to the same are the same.

    Attributes:
        loaded: the model, with the part of its head that counts.
        window: tokens at once.
        stride: tokens from one window to the next; None reads first windows alone.
        bos: which special tokens begin a document.
        padding: whether rows of the vocabulary without a token count; `counted` where there are none.
        unscored: ids that are neither input nor label, beside the special ones.
    """

    loaded: LoadedModel
    window: int
    stride: int | None
    bos: Bos
    padding: Padding
    unscored: Collection[int]

    def cut(self, documents: Sequence[Document]) -> list[Window]:
        """The windows of documents, in their order; those of a model of the same tokenizer serve again."""
        tokenizer = self.loaded.tokenizer
        how = (self.window, self.stride, self.bos, tuple(self.unscored), tokenizer.bos_token_id)
        what = (text_hash(documents), tuple(document.doc_id for document in documents))
        key = (self.loaded.tokenizer_hash, how, what)
        windows = _cut.pop(key, None)
        if windows is None:
            windows = cut_windows(documents, tokenizer, self.window, self.bos, self.stride, self.unscored)
        _cut[key] = windows  # last, as it was used last
        while len(_cut) > _MOST_CUT:
            del _cut[next(iter(_cut))]
        return list(windows)

    def departures(self) -> list[str]:
        """What departs from first windows, the tokenizer's BOS and the whole vocabulary: part of a run's identity."""
        return [
            *([] if self.bos is Bos.tokenizer else [f"bos {self.bos.value}"]),
            *([] if self.stride is None else [f"stride {self.stride}"]),
            *([] if self.padding is Padding.counted else [f"padding {self.padding.value}"]),
        ]


def read_as_asked(cell: Cell, loaded: LoadedModel) -> Reading:
    """Settle what a cell leaves to its model: no window beyond its context, half of it as stride.

    Raises:
        RbpxError: the context is shorter than the authors' windows or than the stride, or a token that is asked for
            does not exist.
    """
    window, stride = cell.cut_for(loaded.context)
    official = cell.protocol == OFFICIAL
    if official and window < cell.window:
        raise RbpxError(
            f"protocol=official reads {cell.window} tokens at once, {cell.model} at most {window}; use protocol=paper"
        )
    if stride is not None and stride >= window:
        raise RbpxError(
            f"protocol.stride={stride} is not below the {window} tokens that {cell.model} reads at once; give a smaller"
        )
    padding = Padding(cell.padding)
    if loaded.n_token_ids >= loaded.head.vocab_size:
        padding = Padding.counted
    if padding is Padding.masked:
        loaded = replace(loaded, head=without_padding(loaded.head, loaded.n_token_ids))
    return Reading(
        loaded=loaded,
        window=window,
        stride=stride,
        bos=acting_bos(loaded.tokenizer, Bos(cell.bos)),
        padding=padding,
        unscored=[authors_padding(loaded.tokenizer)] if official else [],
    )
