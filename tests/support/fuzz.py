"""Fuzz targets: each takes any bytes, and either succeeds or refuses them in one line.

Tests draw the bytes from the corpora here, mutated: a few of them daily, thousands in tests/nightly.
"""

import gzip
import hashlib
import io
import json
import logging
import math
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rbpx.config.imports import ImportConfig
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import read_file
from rbpx.data.windows import Window
from rbpx.errors import RbpxError
from rbpx.measure.extract import ROW
from rbpx.measure.reading.parts import Parts
from rbpx.store.imports.engine_tokens import read_engine_tokens
from rbpx.store.imports.harness_samples import read_samples
from rbpx.store.imports.table import import_file
from rbpx.store.store import Store
from rbpx.ties import Ties

SUFFIXES = (".jsonl", ".json", ".csv", ".txt", ".jsonl.gz", ".csv.gz", ".parquet")
BOUNDS = DatasetConfig(row_mib=1, file_mib=2)


def read_as(names: Iterable[str], content: bytes, read: Callable[[Path], object]) -> None:
    """Read a file of each of these names; it is read, or refused in one line, and nothing else is raised."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            try:
                read(path)
            except RbpxError as problem:
                said = str(problem)
                assert said, "a refusal says why"
                assert "\n" not in said, f"a refusal is one line: {said!r}"


def texts(content: bytes) -> None:
    """A file of texts, by each suffix that it may have."""
    for wanted in (BOUNDS, DatasetConfig(row_mib=1, file_mib=2, articles=True)):
        read_as([f"a{suffix}" for suffix in SUFFIXES], content, partial(read_file, wanted=wanted))


def imports(content: bytes) -> None:
    """A table of other people's results, by each suffix, into a store of its own."""
    config = ImportConfig(source="them", ties=Ties.mid, family=None)

    def read(path: Path) -> None:
        import_file(Store(path.parent / "store"), path, config)

    read_as(("a.csv", "a.json", "a.jsonl", "a.parquet", "a.csv.gz"), content, read)


def engine_rows(content: bytes) -> None:
    """Tokens that another engine scored, by each suffix: each has a place and a probability, and can be stored."""

    def read(path: Path) -> None:
        for token in read_engine_tokens(path, Ties.pessimistic, 1 << 24)[1]:
            assert -1e30 < token.logprob <= 0
            counts = (token.doc_id, token.position, token.token_id, token.greater or 0, token.ties or 0)
            assert all(type(n) is int and 0 <= n < 2**31 - 1 for n in counts)

    read_as(("a.jsonl", "a.json", "a.csv"), content, read)


def samples(content: bytes) -> None:
    """Samples of lm-evaluation-harness: the scores are numbers within their ranges."""

    def read(path: Path) -> None:
        scored = read_samples(path)
        assert scored.accuracy is None or 0 <= scored.accuracy <= 1
        for number in (scored.accuracy_stderr, scored.bits_per_byte, scored.bits_per_byte_stderr):
            assert number is None or (math.isfinite(number) and number >= -1e-2)

    read_as(["samples_a_2026-08-01T10-11-12.345678.jsonl"], content, read)


def parts(content: bytes) -> None:
    """A sealed part of a cell, as it lies there and under a digest of its own: no rows but of the tokens asked for."""
    for sealed in (content, hashlib.sha256(content).digest() + content):
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder))
            _seal(store)
            (path,) = Path(folder).glob("running/.parts.*.tmp")
            path.write_bytes(sealed)
            rows = Parts(store, _KEY, ROW).rows(_WINDOW)
            assert rows is None or (rows["token_id"].tolist(), rows["position"].tolist()) == ([8, 9], [1, 2])


# -------------------------------------------------------------------------------------------------------------- corpora


def _parquet() -> bytes:
    sink = io.BytesIO()
    table = pa.table(
        {"text": ["a", None, "b"], "k": [1, 2, 3], "rbp": np.float32([0.1, 0.2, 0.3]), "more": [[1], [], [2]]}
    )
    pq.write_table(table, sink)
    return sink.getvalue()


_ROWS = [{"family": "f", "model": "o/m", "S": 10, "dataset": "d", "k": k, "rbp": k / 4, "n_tokens": 4} for k in (1, 2)]
_CSV = b"family,model,S,dataset,k,rbp,n_tokens,ce\nf,o/m,10,d,1,0.25,4,3.5\nf,o/m,1e1,d,2,.5,4,\n"
TABLES = [
    _CSV,
    b'text,more\n"one\ntwo",1\n"say ""yes""",2\n',
    b"family,size,S,dataset,rbp_1,rbp_10\nf,m,10,d,0.25,0.5\nf,n,11,d,,0.5\n",
    json.dumps(_ROWS).encode(),
    "\n".join(json.dumps(row) for row in _ROWS).encode(),
    b'{"text": "a"}\n{"text": "\\ud800"}\n',
    b'{"text": {"a": [1, 1.5, true, null]}, "k": 1e400}\n',
    b"[" * 2_000 + b"]" * 2_000,
    b" = Title = \n\nOne line\n = Other = \n",
    gzip.compress(_CSV),
    gzip.compress(b'{"text": "' + b"a" * 3_000_000 + b'"}\n'),
    gzip.compress((b'{"text": "' + b"a" * 1_000 + b'"}\n') * 2_500),
    _parquet(),
]
_VLLM = {
    "prompt_logprobs": [None, {"3": {"logprob": -1.5, "rank": 2, "decoded_token": "x"}}],
    "prompt_token_ids": [1, 3],
}
_TOKEN = {"doc_id": 0, "position": 1, "token_id": 5, "rank": 3, "logprob": -1.5}
_SGLANG = {"meta_info": {"input_token_logprobs": [[None, 1, None], [-2.5, 3, "y"]]}}
ENGINES = [
    *(json.dumps(each).encode() for each in (_VLLM, _TOKEN, _SGLANG, {"choices": [_VLLM, _VLLM]}, [_TOKEN])),
    b"doc_id,position,token_id,greater,ties,logprob\n0,1,5,2,0,-1.5\n0,2,6,0,1,-1e-3\n",
    json.dumps(_TOKEN | {"logprob": -(10**400)}).encode(),
    json.dumps(_TOKEN | {"position": 2**31 - 1}).encode(),
    json.dumps(_TOKEN).replace("5", "[" * 970 + "]" * 970).encode(),
    json.dumps(_VLLM | {"prompt_token_ids": [1, ["9" * 5000]]}).encode(),
]


_KEY = "0123456789abcdef"
_WINDOW = Window(3, np.array([7, 8, 9], np.int32), np.array([False, True, True]), 3, 2)


def _seal(store: Store) -> None:
    """Seal the rows of a window as a part."""
    sealing = Parts(store, _KEY, ROW)
    sealing.add(np.array([(3, 1, 8, 0, 0, -0.5), (3, 2, 9, 4, 1, -2.5)], ROW))
    sealing.seal()


def _sealed() -> bytes:
    """The bytes of a part."""
    with tempfile.TemporaryDirectory() as folder:
        _seal(Store(Path(folder)))
        (path,) = Path(folder).glob("running/.parts.*.tmp")
        return path.read_bytes()


PARTS = [_sealed(), _sealed()[32:], b"", _sealed()[:41]]

_SAMPLE = {
    "doc_id": 0,
    "target": "1",
    "arguments": {f"gen_args_{n}": {"arg_0": "Q ", "arg_1": text} for n, text in enumerate("ab")},
    "filtered_resps": [["-1.5", "False"], ["-1.0", "True"]],
    "filter": "none",
    "metrics": ["acc"],
    "acc": 1.0,
}
SAMPLES = [
    json.dumps(_SAMPLE).encode(),
    "\n".join(json.dumps(_SAMPLE | {"doc_id": n}) for n in range(3)).encode(),
    json.dumps(_SAMPLE | {"target": "9" * 5000}).encode(),
    json.dumps(_SAMPLE | {"filtered_resps": [["-1", "True"], [-(10**400), "True"]]}).encode(),
    json.dumps(_SAMPLE | {"filtered_resps": [["-1", "True"], ["-1e308", "True"]]}).encode(),
    json.dumps(_SAMPLE).replace("1.0", "[" * 970 + "]" * 970).encode(),
]
_WORDS = [b"", b"\n", b"\r", b": ", b"&a ", b"- ", b"_target_: a", b"\xef\xbb\xbf", b"9" * 5000]
_WORDS += b'0 -1 1e999 nan \x00 \xff " , { ] *a ${ hydra: !! \\ud800 text rbp'.split()


def mutated(corpus: list[bytes]) -> st.SearchStrategy[bytes]:
    """A member of a corpus with a few pieces taken out, put in, or brought from another."""
    edit = st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(_WORDS) | st.binary(max_size=6))

    def apply(seed: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
        for where, length, piece in edits:
            at = int(where * len(seed))
            seed = seed[:at] + piece + seed[at + length :]
        return seed

    return st.builds(apply, st.sampled_from(corpus), st.lists(edit, max_size=4)) | st.binary(max_size=60)


# target -> what takes any bytes, and whole files to begin from
TARGETS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "texts": (texts, TABLES),
    "imports": (imports, TABLES),
    "engine rows": (engine_rows, ENGINES),
    "parts": (parts, PARTS),
    "samples": (samples, SAMPLES),
}


def drive(run: Callable[[bytes], None], contents: st.SearchStrategy[bytes], n_examples: int) -> None:
    """Give a target that many contents; what it says of them, lone surrogates too, is nobody's to report."""

    @settings(max_examples=n_examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(contents)
    def one(content: bytes) -> None:
        run(content)

    before = logging.root.manager.disable
    logging.disable()
    try:
        one()
    finally:
        logging.disable(before)
