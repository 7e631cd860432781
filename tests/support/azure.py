"""Microsoft's emulator of Azure's blob storage (azurite, of npm) on loopback, where it is installed."""

import base64
import hashlib
import hmac
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

PROGRAM: Final = "azurite-blob"
CONTAINER: Final = "evidence"
_ACCOUNT: Final = "devstoreaccount1"  # of every azurite, with this key
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION: Final = "2021-08-06"


def is_installed() -> bool:
    """Whether the emulator can be started here."""
    return shutil.which(PROGRAM) is not None


def environment(port: int, cache: Path) -> dict[str, str]:
    """How a command on a machine with this cache finds it."""
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
        "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{_ACCOUNT}",
        "XDG_CACHE_HOME": str(cache),
    }


@contextmanager
def azure() -> Iterator[int]:
    """The port of an emulator with an empty container, for as long as the block lasts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [PROGRAM, "--blobPort", str(port), "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    process = subprocess.Popen([*line, "--skipApiVersionCheck"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _make_container(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _make_container(port: int, patience_s: float = 60.0) -> None:
    """Ask for it until the emulator has started; a request is signed as Azure's documentation says."""
    place, date = f"/{_ACCOUNT}/{CONTAINER}", formatdate(usegmt=True)
    signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{_ACCOUNT}{place}\nrestype:container"
    mac = base64.b64encode(hmac.digest(base64.b64decode(_KEY), signed.encode(), hashlib.sha256)).decode()
    headers = {"x-ms-date": date, "x-ms-version": _VERSION, "Authorization": f"SharedKey {_ACCOUNT}:{mac}"}
    asked = Request(
        f"http://127.0.0.1:{port}{place}?restype=container", b"", headers | {"Content-Type": ""}, method="PUT"
    )
    until = time.monotonic() + patience_s
    while True:
        try:
            with urlopen(asked, timeout=5):
                return
        except ConnectionError:
            if time.monotonic() > until:
                raise
        except OSError as problem:
            if not isinstance(getattr(problem, "reason", None), ConnectionError) or time.monotonic() > until:
                raise
        time.sleep(0.1)
