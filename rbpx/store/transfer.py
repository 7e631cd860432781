"""Copies a store to and from object storage (s3://, gs://, az://), by obstore; `push` sends what is missing there.

The layout is that of a folder, except that names of tables have 16 digits of their checksum:
runs/RUN_ID/tokens-SHA256.parquet. So two machines that push the same run at once never mix their tables: each sends its
own, then the manifest unless there is one. A run without a manifest does not exist.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rbpx.errors import MeasureError, RbpxError
from rbpx.store.merge import FILES, REFERRED, Folder, Merged, missing
from rbpx.store.records import MANIFEST, MANIFESTS, RECORDS, ending_of, place_of
from rbpx.store.verify import run_fault

if TYPE_CHECKING:
    from obstore.store import ObjectStore

    from rbpx.store.store import Store

T = TypeVar("T")
_KNOWN: Final = ("s3://", "gs://", "az://")
_CLIENT: Final[dict[str, Any]] = {"connect_timeout": "5s", "timeout": "60s", "allow_http": True}
_RETRIES: Final[dict[str, Any]] = {  # of refusals (429, 5xx) and broken connections
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=120),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 2},
}
_CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, the path of a key or of what gcloud wrote",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


class Bucket:
    """A store in object storage, to merge from (`merge.Source`) and push to."""

    def __init__(self, url: str) -> None:
        """List its contents; RbpxError without its library or for a wrong URL, MeasureError if it does not answer."""
        if not url.startswith(_KNOWN):
            raise RbpxError(f"{url} is no place that a store is copied to; known: a folder, {', '.join(_KNOWN)}")
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise RbpxError(f"{url} needs a library for object storage: pip install 'rbpx[bucket]'") from None
        self.name = url.rstrip("/")
        connect: Any = from_url  # its overloads name the options of each kind of storage
        self._store: ObjectStore = self._ask(lambda: connect(self.name, client_options=_CLIENT, retry_config=_RETRIES))
        pages = self._ask(lambda: list(obstore.list(self._store)))
        self.paths = {str(each["path"]) for page in pages for each in page}

    def names(self, kind: str) -> list[str]:
        """As `Source`."""
        found = (re.fullmatch(rf"{kind}/([^/]+){re.escape(ending_of(kind))}", path) for path in self.paths)
        return sorted(match[1] for match in found if match)

    def get(self, path: str, to: Path) -> None:
        """As `Source`."""
        import obstore

        def read() -> None:
            with to.open("wb") as file:
                for part in obstore.get(self._store, path).stream():
                    file.write(part)

        self._ask(read)

    def get_table(self, run_id: str, name: str, sha256: str, to: Path) -> None:
        """As `Source`; also accepts a plain name, as other programs copy a store."""
        named = _table(run_id, name, sha256)
        self.get(named if named in self.paths else f"runs/{run_id}/{name}", to)

    def put(self, path: str, file: Path) -> None:
        """Send a file unless one of that name exists."""
        import obstore

        if path in self.paths:
            return
        mode: Any = "create" if path.endswith(MANIFEST) else "overwrite"
        self._ask(partial(obstore.put, self._store, path, file, mode=mode))
        self.paths.add(path)

    def _ask(self, do: Callable[[], T]) -> T:
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            return do()
        except AlreadyExistsError:
            raise FileExistsError from None
        except (BaseError, OSError, ValueError) as problem:
            raise MeasureError(_unreached(self.name, problem)) from None


def push(store: "Store", bucket: Bucket, advance: Callable[[], None] = lambda: None) -> Merged:
    """Send what a bucket lacks; a run is checked first, and its manifest goes last.

    Raises:
        MeasureError: the bucket does not answer; the same call resumes.
    """
    sent, here = Merged(), Folder(store)
    for kind in (*REFERRED, MANIFESTS, *FILES, *RECORDS):
        for name in missing(here, kind, {*bucket.names(kind)}.__contains__, sent, advance):
            file, fault = store.file(kind, name), run_fault(name, store.run_folder(name)) if kind == MANIFESTS else None
            if fault is not None:
                sent.skipped.append(f"run {name}: it is corrupt: {fault}")
                continue
            for table, sha256 in store.manifest(name)["files"].items() if kind == MANIFESTS else ():
                bucket.put(_table(name, table, sha256), file.with_name(table))
            try:
                if file.is_file():
                    bucket.put(place_of(kind, name), file)
                    sent.copied[kind] += 1
            except FileExistsError:  # another machine was faster
                sent.already_here[kind] += 1
    return sent


def _table(run_id: str, name: str, sha256: str) -> str:
    return f"runs/{run_id}/{name.removesuffix('.parquet')}-{sha256[:16]}.parquet"


def _unreached(url: str, problem: Exception) -> str:
    said = str(problem)
    found = (re.search(r"status code: (\d{3}[\w ]*)", said), re.search(r"<Code>(\w+)</Code>", said))
    words = ", ".join(each[1].strip() for each in found if each)
    words = words or " ".join(said.split("Debug source")[0].split())[:160]
    return (
        f"{url} cannot be used ({words}); check its name, the network and the credentials "
        f"({_CREDENTIALS[url.split(':')[0]]}), then run the same line again, which goes on"
    )
