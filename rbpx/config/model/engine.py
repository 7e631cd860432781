"""The configuration of another engine that measures in place of rbpx, as a file of conf/engine or overrides give it."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from rbpx.config.keys.key import name_of
from rbpx.errors import RbpxError

_KNOWN: Final = ("vllm",)
_LONGEST_S: Final = 1_000_000  # sockets take no time without end


@dataclass
class EngineConfig:
    """A running server that tells the log-probability and the rank of each token it is sent (conf/engine/*.yaml).

    Attributes:
        name: vllm.
        url: of its OpenAI-compatible interface, as http://host:8000/v1.
        model: the name under which it serves the model; None: the model's own id or folder.
        version: that it must have; None takes the one that it says. Part of what is asked where it is given.
        timeout_s: seconds for an answer.
    """

    name: str = "vllm"
    url: str = "http://127.0.0.1:8000/v1"
    model: Any = None
    version: Any = None
    timeout_s: float = 600.0

    def __post_init__(self) -> None:
        """Refuse what is no engine.

        Raises:
            RbpxError: an unknown engine, a URL that names no server or holds a password, a number in place of a name.
        """
        if self.name not in _KNOWN:
            raise RbpxError(f"engine.name={self.name} is unknown; known: {', '.join(_KNOWN)}")
        for key in ("model", "version"):
            name_of(f"engine.{key}", getattr(self, key))
        if not 0 < self.timeout_s <= _LONGEST_S:
            raise RbpxError(
                f"engine.timeout_s={self.timeout_s} is not a positive number of seconds up to {_LONGEST_S:,}; give one"
            )
        parts = self._parts()
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RbpxError(f"engine.url={self.url} is no address of a server; give one as http://host:8000/v1")
        if parts.username is not None or parts.password is not None:  # the request is kept with its runs
            raise RbpxError("engine.url holds a name or a password; give a server's key in VLLM_API_KEY instead")

    @property
    def root(self) -> str:
        """The address of the server, without the /v1 of its interface."""
        parts = self._parts()
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"

    def _parts(self) -> SplitResult:
        try:
            parts = urlsplit(self.url)
            _ = parts.port  # read when asked for
        except ValueError as problem:
            raise RbpxError(
                f"engine.url={self.url} is no address ({problem}); give one as http://host:8000/v1"
            ) from None
        return parts
