"""The configuration of a protocol: how documents become windows, as a file of conf/protocol gives it."""

from dataclasses import dataclass
from typing import Final

from rbpx.config.options import Padding
from rbpx.errors import RbpxError

SHORTEST = 2  # tokens; the first one is never predicted
HARNESS: Final = "harness"  # the protocol of items, and of texts that are to compare with them
ROLLING_WINDOW: Final = 1024  # of conf/protocol/rolling.yaml
_OF_TEXTS: Final = ("paper", "rolling")


@dataclass
class ProtocolConfig:
    """How documents become windows (conf/protocol/*.yaml).

    Attributes:
        name: of the protocol.
        window: tokens that the model reads at once, at most its context; null is its context.
        whole: whether documents are read to their end, window after window, instead of their first window alone.
        stride: tokens from one window of a whole document to the next; None is half a window.
        padding: whether vocabulary rows without a token count.
    """

    name: str = "paper"
    window: int | None = 512
    whole: bool = False
    stride: int | None = None
    padding: Padding = Padding.counted

    def __post_init__(self) -> None:
        """Refuse windows that would leave out a token.

        Raises:
            RbpxError: a window or stride that is too short, a stride as long as its window, or one without `whole`.
        """
        if self.window is None and self.name != HARNESS:
            raise RbpxError(f"protocol.window=null is the model's context in protocol={HARNESS} alone; give a number")
        if self.window is not None and self.window < SHORTEST:
            raise RbpxError(f"protocol.window={self.window} predicts nothing; give {SHORTEST} tokens or more")
        if self.stride is None:
            return
        if not self.whole:
            raise RbpxError(f"protocol.stride={self.stride} is for whole documents; use protocol=rolling")
        if self.window is not None and not 0 < self.stride < self.window:
            raise RbpxError(
                f"protocol.stride={self.stride} is not below protocol.window={self.window}, so the first token of each "
                "window would be predicted from nothing; give a smaller one"
            )

    def of_items(self) -> "ProtocolConfig":
        """How items are read: as lm-evaluation-harness does, under whatever protocol of texts they are asked for.

        A window other than that of the paper's or the rolling protocol holds for items too.

        Raises:
            RbpxError: the protocol is that of the authors' documents, or has a stride.
        """
        if self.name == HARNESS:
            return self
        if self.name not in _OF_TEXTS or self.stride is not None:
            key = f"protocol={self.name}" if self.name not in _OF_TEXTS else f"protocol.stride={self.stride}"
            raise RbpxError(f"{key} is for texts, and the dataset has items; use protocol={HARNESS}, or drop it")
        own = self.window not in (ProtocolConfig.window, ROLLING_WINDOW)
        return ProtocolConfig(name=HARNESS, window=self.window if own else None, padding=self.padding)
