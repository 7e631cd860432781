"""The configuration of a protocol: how documents become windows, as a file of conf/protocol gives it."""

from dataclasses import dataclass

from rbpx.config.options import Padding
from rbpx.errors import RbpxError

SHORTEST = 2  # tokens; the first one is never predicted


@dataclass
class ProtocolConfig:
    """How documents become windows (conf/protocol/*.yaml).

    Attributes:
        name: of the protocol.
        window: tokens that the model reads at once, at most its context.
        whole: whether documents are read to their end, window after window, instead of their first window alone.
        stride: tokens from one window of a whole document to the next; None is half a window.
        padding: whether vocabulary rows without a token count.
    """

    name: str = "paper"
    window: int = 512
    whole: bool = False
    stride: int | None = None
    padding: Padding = Padding.counted

    def __post_init__(self) -> None:
        """Refuse windows that would leave out a token.

        Raises:
            RbpxError: a window or stride that is too short, a stride as long as its window, or one without `whole`.
        """
        if self.window < SHORTEST:
            raise RbpxError(f"protocol.window={self.window} predicts nothing; give {SHORTEST} tokens or more")
        if self.stride is None:
            return
        if not self.whole:
            raise RbpxError(f"protocol.stride={self.stride} is for whole documents; use protocol=rolling")
        if not 0 < self.stride < self.window:
            raise RbpxError(
                f"protocol.stride={self.stride} is not below protocol.window={self.window}, so the first token of each "
                "window would be predicted from nothing; give a smaller one"
            )
