"""Objects under a URL of object storage: list, read in parts, write once, remove; each failure is one clear line."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from rbpx.errors import MeasureError, RbpxError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")
_KNOWN: Final = ("s3://", "gs://", "az://")
_TRIES: Final = 3  # of an answer whose connection breaks after its head, which the library does not ask for again
_PART_BYTES: Final = 16 << 20  # read or sent in one request, so that a time limit holds for a part, not for a file
_LIMITS: dict[str, Any] = {"connect_timeout": "5s", "timeout": "60s", "allow_http": True}
_RETRIES: dict[str, Any] = {  # of refusals (429, 5xx) and broken connections
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=120),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 2},
}
_CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, the path of a key or of what gcloud wrote",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_SERVERS: Final = {  # variables that name a server in the place of the one of the cloud
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_UNKNOWN_HEADER: Final = ("NotImplemented", "501 Not Implemented", "InvalidArgument")  # of a condition
_REFUSED: Final = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "401 Unauthorized")


class GoneError(MeasureError):
    """An object that is not in the bucket."""


class StrangeNameError(RbpxError):
    """A listing holds an object whose name the library refuses, and all that is listed with it."""


class ShortError(MeasureError):
    """An object of which another number of bytes came than it has."""


@dataclass(frozen=True)
class Entry:
    """An object as a listing describes it.

    Attributes:
        n_bytes: its size.
        tag: changes when it is replaced.
        written: when.
    """

    n_bytes: int
    tag: str
    written: datetime

    @property
    def age_s(self) -> float:
        """Seconds since it was written."""
        return (datetime.now(UTC) - self.written).total_seconds()


class Bucket:
    """The objects whose names begin with the path of a URL (s3://, gs:// or az://), by what follows it."""

    def __init__(self, url: str) -> None:
        """Connect to nothing yet.

        Raises:
            RbpxError: the library is not installed, or the URL names no object storage that it knows.
        """
        self.url = url.rstrip("/")
        self._store = _connect(self.url)

    def below(self, folder: str | None) -> dict[str, Entry]:
        """The objects in a folder, or all, by their path, that of the folder included.

        Raises:
            StrangeNameError: one of them has a name that the library refuses.
            RbpxError: there is no such bucket, or no access to it.
            MeasureError: it does not answer.
        """
        import obstore

        def read() -> dict[str, Entry]:
            pages = obstore.list(self._store, folder)
            return {each["path"]: _entry(each) for page in pages for each in page}

        return self._ask("read", read)

    def entry(self, path: str) -> Entry | None:
        """One object as a listing would describe it; None where it does not exist."""
        import obstore

        try:
            return self._ask("read", lambda: _entry(obstore.head(self._store, path)))
        except GoneError:
            return None

    def get(self, path: str, n_bytes: int | None = None) -> bytes:
        """The bytes of a small object, as many as it has: what comes short is asked for again.

        Args:
            path: the object.
            n_bytes: how long a listing says that it is; None to ask.

        Raises:
            GoneError: it does not exist.
            ShortError: it came with another length each time.
            MeasureError: the storage does not answer.
        """
        import obstore

        for _ in range(_TRIES):
            content = self._ask("read", lambda: bytes(obstore.get(self._store, path).bytes()))
            if len(content) == n_bytes:
                return content
            there = self.entry(path)  # a listing may lag behind
            if there is None:
                raise GoneError(f"store={self.url}: {path} is gone")
            n_bytes = there.n_bytes
            if len(content) == n_bytes:
                return content
        came = f"{path} came with {len(content):,} of {n_bytes:,} bytes"
        raise ShortError(f"store={self.url} cannot be read ({came}); run the same line again when it answers")

    def parts(self, path: str, n_bytes: int) -> Iterator[bytes]:
        """The bytes of a large object, a part at a time."""
        import obstore

        for start in range(0, n_bytes, _PART_BYTES):
            length = min(_PART_BYTES, n_bytes - start)
            read = partial(obstore.get_range, self._store, path, start=start, length=length)
            yield bytes(self._ask("read", read))

    def has_copy(self, path: str, file: Path, listed: Entry) -> bool:
        """Whether an object is a file: by the length and tag in a listing; asked for, and read, where these differ.

        Clouds beside S3 have tags that say nothing of contents: there only lengths are compared.
        """
        n_bytes = file.stat().st_size
        if listed.n_bytes == n_bytes and _tag_of(file, listed.tag) in (None, listed.tag.strip('"')):
            return True
        there = self.entry(path)
        if there is None or there.n_bytes != n_bytes:
            return False
        with file.open("rb") as here:
            return all(part == here.read(len(part)) for part in self.parts(path, n_bytes))

    def put_new(self, path: str, content: bytes | Path) -> bool:
        """Write an object unless there is one of that name; returns whether there was none.

        A large file is sent in parts, which storage puts together when all are there. That cannot be conditional, so
        its name has to say what it contains.
        """
        if isinstance(content, Path) and content.stat().st_size > _PART_BYTES:
            if self.entry(path) is not None:
                return False
            self.put(path, content)
            return True
        try:
            self._write(path, content, mode="create")
        except FileExistsError:
            return False
        return True

    def mark(self, path: str, content: bytes) -> None:
        """Write a first object unless it is there, and find out whether the server leaves alone what is there.

        A server that ignores the condition writes it each time it is asked; one that keeps to it refuses the second.

        Raises:
            RbpxError: the bucket cannot be written, or two writers would replace each other's objects there.
            MeasureError: it does not answer.
        """
        try:
            is_replaced = self.put_new(path, content) and self.put_new(path, content)
        except MeasureError as problem:
            told = next((code for code in _UNKNOWN_HEADER if code in str(problem)), None)
            if told is None:
                raise
            raise self._unconditional(f"it answers {told}") from None
        if is_replaced:
            raise self._unconditional("it replaces what is there")

    def put(self, path: str, content: bytes | Path) -> None:
        """Write an object, or replace the one of that name.

        Raises:
            MeasureError: the storage does not answer, or does not keep what it says it has.
        """
        self._write(path, content, chunk_size=_PART_BYTES)

    def _write(self, path: str, content: bytes | Path, **how: Any) -> None:
        """Write an object, and look whether it is there: an answer is not yet a copy."""
        import obstore

        n_bytes = len(content) if isinstance(content, bytes) else content.stat().st_size
        for _ in range(_TRIES):
            self._ask("written", lambda: obstore.put(self._store, path, content, **how))
            there = self.entry(path)
            if there is not None and (there.n_bytes == n_bytes or sum(map(len, self.parts(path, n_bytes))) == n_bytes):
                return
        kept = "none" if there is None else f"{there.n_bytes:,}"
        problem = f"it took {n_bytes:,} bytes of {path} and has {kept}"
        raise MeasureError(f"store={self.url} cannot be written ({problem}); run the same line again")

    def remove(self, paths: Iterable[str]) -> None:
        """Remove objects, those of them that exist, in order."""
        import obstore

        for path in paths:
            try:
                self._ask("written", partial(obstore.delete, self._store, path))
            except GoneError:
                continue

    def _ask(self, how: str, do: Callable[[], T]) -> T:
        """The answer of the storage; what it could not give is raised as one of our errors."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        for tries_left in reversed(range(_TRIES)):
            try:
                return do()
            except AlreadyExistsError:
                raise FileExistsError from None
            except (BaseError, OSError) as problem:
                said = str(problem)
                broken = "body" in said.split("Debug source")[0]
                if not (broken and tries_left):
                    raise self._error(how, problem, said) from None
        raise AssertionError("the last try returns or raises")

    def _unconditional(self, reason: str) -> RbpxError:
        return RbpxError(
            f"store={self.url} cannot be written: its server does not keep to If-None-Match ({reason}), so writers "
            "replace each other's runs; measure into a folder and copy that there: such a store is read"
        )

    def _error(self, how: str, problem: Exception, said: str) -> RbpxError:
        name = f"store={self.url}"
        if "NoSuchBucket" in said or "ContainerNotFound" in said:
            return RbpxError(f"{name}: there is no bucket {self.url.split('/')[2]}; make it first, or check its name")
        if "169.254.169.254" in said or ("metadata" in said and "credential" in said.lower()):
            return _no_credentials(self.url)
        strange = re.search(r'invalid path: .*?[Pp]ath "(.*?)"', said, re.DOTALL)
        if strange is not None:
            return StrangeNameError(f"{name} holds an object with a name that no store has, {strange[1]!r}; remove it")
        code = re.search(r"<Code>(\w+)</Code>", said)
        status = re.search(r"status code: (\d{3}[\w ]*)", said)
        words = ", ".join(found[1].strip() for found in (status, code) if found) or _reason(said)
        if any(refused in said for refused in _REFUSED) or "403 Forbidden" in said:
            return RbpxError(f"{name} refuses access ({words}); check the credentials and what they allow")
        if isinstance(problem, FileNotFoundError):
            return GoneError(f"{name}: an object is gone ({words})")
        return MeasureError(f"{name} cannot be {how} ({words}); run the same line again when it answers")


def _no_credentials(url: str) -> RbpxError:
    return RbpxError(f"store={url}: no credentials; set {_CREDENTIALS.get(url.split(':')[0], _CREDENTIALS['s3'])}")


def _reason(said: str) -> str:
    """What a library's error says before it shows its own fields, without addresses and times."""
    text = " ".join(said.split("Debug source")[0].split())
    return re.sub(r"^.*(HTTP error: )", r"\1", text)[:160]


def _entry(each: Any) -> Entry:
    return Entry(each["size"], each["e_tag"] or f"{each['last_modified']} {each['size']}", each["last_modified"])


def _connect(url: str) -> "ObjectStore":
    if not url.startswith(_KNOWN):  # the library would take a folder, a web server, and memory that ends with it
        raise RbpxError(f"store={url} is not on a storage that can hold a store; known: {', '.join(_KNOWN)}")
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise RbpxError(f"store={url} needs a library for object storage: pip install 'rbpx[bucket]'") from None
    try:
        connect: Any = from_url  # its overloads name the options of each kind of storage
        return cast("ObjectStore", connect(url, client_options=_LIMITS, retry_config=_RETRIES, **_profile(url)))
    except (BaseError, ValueError) as problem:
        if "Account must be specified" in str(problem):
            raise _no_credentials(url) from None
        raise RbpxError(f"store={url} does not exist: {_reason(str(problem))}; known: {', '.join(_KNOWN)}") from None


def _profile(url: str) -> dict[str, Any]:
    """Credentials of a profile of AWS, which only its own library reads; nothing where the environment has them."""
    if not url.startswith("s3://") or "AWS_ACCESS_KEY_ID" in os.environ:
        return {}
    place = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")).expanduser()
    if "AWS_PROFILE" not in os.environ and not place.is_file():
        return {}
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise RbpxError(
            f"store={url}: a profile of {place} is read by boto3: pip install boto3, or set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        ) from None
    return {"credential_provider": Boto3CredentialProvider()}


def _tag_of(path: Path, like: str) -> str | None:
    """The tag that S3 gives a file, an MD5 of it or of those of its parts; None where a tag is none of these."""
    in_parts = re.fullmatch(r'"?[0-9a-f]{32}(-\d+)?"?', like)
    if in_parts is None:
        return None
    with path.open("rb") as file:
        parts = [hashlib.md5(part, usedforsecurity=False) for part in iter(partial(file.read, _PART_BYTES), b"")]
    if in_parts[1] is None:
        return " ".join(part.hexdigest() for part in parts)
    whole = hashlib.md5(b"".join(part.digest() for part in parts), usedforsecurity=False)
    return f"{whole.hexdigest()}-{len(parts)}"


def endpoint_of(url: str) -> str | None:
    """The server that a URL is asked from, where the environment names one of its own."""
    return next((os.environ[name] for name in _SERVERS.get(url.split(":")[0], ()) if os.environ.get(name)), None)
