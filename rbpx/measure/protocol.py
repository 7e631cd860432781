"""Resolves a cell's protocol for its model (window and stride within its context, BOS, padding) and cuts windows."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from rbpx.config.grid import Cell
from rbpx.config.options import Bos, Joined, Padding
from rbpx.config.text.dataset import HARNESS
from rbpx.data.chat import chat_identity, rendered
from rbpx.data.corpus import Document, text_hash
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.windows import Window, acting_bos, authors_padding, cut_windows, ids_around, prefix_id
from rbpx.errors import RbpxError
from rbpx.files.escapes import visible_line
from rbpx.models.description import DescribedModel
from rbpx.models.head import without_padding
from rbpx.models.load import LoadedModel
from rbpx.ties import OFFICIAL

M = TypeVar("M", LoadedModel, DescribedModel)

_CACHED_TEXTS = 8  # texts; the sizes of a family share tokenizer and texts
_cached_windows: dict[Hashable, list[Window]] = {}  # least recently used first


@dataclass(frozen=True, eq=False)
class ResolvedProtocol(Generic[M]):
    """How a model reads documents. Choices are stored by their effect, so equivalent ones compare equal.

    Attributes:
        loaded: the model, its head limited to the vocabulary rows that compete for a rank; a description only where
            another engine runs the model.
        stride: None reads only the first window of a document.
        padding: `counted` if there are no rows without a token.
        unscored: ids, in addition to the special ones, that are neither read nor scored.
        harness: whether documents are cut as lm-evaluation-harness does.
        prefix: id of the token that begins each window.
        chat: identity of the chat template that renders items.
    """

    loaded: M
    window: int
    stride: int | None
    bos: Bos
    padding: Padding
    unscored: Collection[int]
    harness: bool = False
    joined: Joined = Joined.skip
    prefix: int | None = None
    chat: str | None = None
    system: str | None = None

    def windows(self, documents: Sequence[Document]) -> list[Window]:
        """The windows of documents, in their order; kept for models of the same tokenizer."""
        tokenizer = self.loaded.tokenizer
        settings: list[Hashable] = [self.window, self.stride, self.bos, tuple(self.unscored), tokenizer.bos_token_id]
        settings += [self.harness, self.joined, self.prefix, self.chat]
        text = (text_hash(documents), tuple(document.doc_id for document in documents))
        key = (self.loaded.tokenizer_hash, *settings, text)
        windows = _cached_windows.pop(key, None)
        if windows is None and self.chat is not None:
            documents = rendered(documents, tokenizer, self.system)
        if windows is None and self.harness:
            windows = cut_as_harness(documents, tokenizer, self.window, self.bos, self.joined)
        elif windows is None:
            windows = cut_windows(documents, tokenizer, self.window, self.bos, self.stride, self.unscored, self.prefix)
        _check_ids(windows, self.loaded)
        _cached_windows[key] = windows
        while len(_cached_windows) > _CACHED_TEXTS:
            del _cached_windows[next(iter(_cached_windows))]
        return list(windows)

    @property
    def beginning(self) -> str:
        """The column `bos` of a run: the policy, with any chat template, or the token that begins each window."""
        if self.prefix is None:
            said = "" if self.system is None else f" and system text {visible_line(self.system)}"
            return self.bos.value if self.chat is None else f"{self.bos.value} with chat template{said}"
        return f"{visible_line(self.loaded.tokenizer.decode([self.prefix]))} (id {self.prefix}) before each window"

    def departures(self) -> list[str]:
        """What differs from first windows, the tokenizer's BOS and the whole vocabulary: part of a run's identity.

        Until 0.3.0 special tokens that a tokenizer appends to a text were scored, so those runs differ.
        """
        tokenizer = self.loaded.tokenizer
        behind = ids_around(tokenizer)[1] if self.bos is Bos.tokenizer else []
        was_scored: bool = bool(behind) and (self.harness or not set(behind) <= set(tokenizer.all_special_ids))
        return [
            *([] if self.bos is Bos.tokenizer else [f"bos {self.bos.value}"]),
            *([] if self.prefix is None else [f"prefix {self.prefix}"]),
            *([] if self.chat is None else [f"chat {self.chat}"]),
            *([] if self.stride is None else [f"stride {self.stride}"]),
            *([] if self.padding is Padding.counted else [f"padding {self.padding.value}"]),
            *(["nothing behind"] if was_scored else []),
        ]


def _check_ids(windows: Sequence[Window], loaded: LoadedModel | DescribedModel) -> None:
    for window in windows:
        token_id = int(window.ids.max(initial=0))
        if token_id >= loaded.n_rows:
            raise RbpxError(
                f"document {window.doc_id} contains {loaded.tokenizer.decode([token_id])!r}, id {token_id} of the "
                f"tokenizer, but {loaded.name} has {loaded.n_rows} rows, up to id {loaded.n_rows - 1}; leave the "
                "document out, or use the model's own tokenizer"
            )


def resolve_protocol(cell: Cell, loaded: LoadedModel) -> ResolvedProtocol[LoadedModel]:
    """Resolve a cell's protocol: no window exceeds the model's context, and the default stride is half a window.

    Raises:
        RbpxError: the model's size differs from its family's file, its context is shorter than the authors' windows or
            than the stride, or the requested BOS or prefix does not exist.
    """
    padding = Padding(cell.padding)
    if loaded.n_token_ids >= loaded.head.vocab_size:
        padding = Padding.counted
    if padding is Padding.masked:
        loaded = replace(loaded, head=without_padding(loaded.head, loaded.n_token_ids))
    return _resolve(cell, loaded, padding)


def resolve_described(cell: Cell, described: DescribedModel) -> ResolvedProtocol[DescribedModel]:
    """As `resolve_protocol`, for a model of another engine, where the whole vocabulary competes."""
    return _resolve(cell, described, Padding.counted)


def _resolve(cell: Cell, loaded: M, padding: Padding) -> ResolvedProtocol[M]:
    if cell.non_embedding_params not in (None, loaded.non_embedding_params):
        raise RbpxError(
            f"{cell.model} has S = {loaded.non_embedding_params:,} non-embedding parameters, but its family's file "
            f"gives {cell.non_embedding_params:,}; check the size or the file"
        )
    window, stride = cell.cut_for(loaded.context)
    official = cell.protocol == OFFICIAL
    if official and cell.window is not None and window < cell.window:
        raise RbpxError(
            f"protocol=official needs windows of {cell.window} tokens, but {cell.model} reads at most {window}; use "
            "protocol=paper"
        )
    prefix = None if cell.prefix is None else prefix_id(loaded.tokenizer, cell.prefix, loaded.n_rows)
    room, behind = (window, "") if prefix is None else (window - 1, "behind its prefix ")
    if stride is not None and stride >= room:
        raise RbpxError(
            f"protocol.stride={stride} must be less than the window, which is {room} tokens {behind}for {cell.model}; "
            "use a smaller stride"
        )
    return ResolvedProtocol(
        loaded=loaded,
        window=window,
        stride=stride,
        bos=acting_bos(loaded.tokenizer, Bos(cell.bos)) if prefix is None else Bos.none,
        padding=padding,
        unscored=[authors_padding(loaded.tokenizer)] if official else [],
        harness=cell.protocol == HARNESS,
        joined=Joined(cell.joined),
        prefix=prefix,
        chat=chat_identity(loaded.tokenizer, cell.system) if cell.chat else None,
        system=cell.system,
    )
