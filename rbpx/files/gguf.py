"""Reads the header of a GGUF file: what its metadata say, and the type and shape of each tensor, but no weights.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The reader of the package `gguf` makes an object
of each token of a vocabulary, which takes seconds, and follows lengths that a damaged file claims to have; here each
length is held against the bytes that are there, so that a file which was cut off or changed is refused in one line.
"""

import mmap
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, Final

from rbpx.errors import RbpxError
from rbpx.files.cells import quoted
from rbpx.files.entries import MIB

SUFFIX: Final = ".gguf"
_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING: Final = 8
_ARRAY: Final = 9
_ALIGNMENT: Final = 32
_FLOATS: Final = ("F64", "F32", "F16", "BF16")  # types that are no quantisation
_BLOCK: Final = re.compile(r"(?:^|\.)blk\.(\d+)\.")  # of the name of a tensor: the layer that it is of
# A file may be sparse and claim anything, so these bound what its header takes; those of real models are a tenth of it.
_HEADER_BYTES: Final = 128 * MIB
_MOST: Final = 1 << 17  # metadata, and tensors


@dataclass(frozen=True)
class GgufTensor:
    """A tensor of a file: its dimensions as in torch, and the type that its numbers are stored in, as Q4_1."""

    shape: tuple[int, ...]
    type: str

    @property
    def n_numbers(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)


@dataclass(frozen=True)
class GgufHeader:
    """What a file says of the model in it.

    Attributes:
        metadata: by key: a number, a truth value or a text; of an array only how many values it has.
        tensors: by name.
    """

    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]

    @property
    def architecture(self) -> str:
        """What llama.cpp calls the architecture of the model."""
        return str(self.metadata["general.architecture"])

    @property
    def n_numbers(self) -> int:
        """Numbers of all tensors."""
        return sum(tensor.n_numbers for tensor in self.tensors.values())

    @property
    def quantisation(self) -> str | None:
        """What the weights are rounded to, as Q4_K_M: as the file says it, else the type that most of them have.

        None where they are floating-point numbers, of 32 bits or 16.
        """
        from gguf import LlamaFileType

        try:
            stated = LlamaFileType(self.metadata["general.file_type"]).name.partition("_")[2]  # MOSTLY_Q4_1
        except (KeyError, ValueError):
            stated = ""
        if stated in ("", "GUESSED"):
            sizes: Counter[str] = Counter()
            for tensor in self.tensors.values():
                sizes[tensor.type] += tensor.n_numbers
            stated = sizes.most_common(1)[0][0]
        return None if stated in _FLOATS else stated


def is_gguf(name: str | Path) -> bool:
    """Whether a model's id or path names a GGUF file."""
    return str(name).lower().endswith(SUFFIX)


def is_installed() -> bool:
    """Whether the package is installed that transformers reads such files with."""
    return find_spec("gguf") is not None


def read_header(path: Path, name: str) -> GgufHeader:
    """The header of a GGUF file, whose tensors are all there.

    Args:
        path: the file.
        name: as requested, for errors.

    Raises:
        RbpxError: the extra `gguf` is not installed, or it is no GGUF file, a damaged one, or one that was cut off.
    """
    if not is_installed():
        raise RbpxError(f"model.id={name} is a GGUF file, which needs the package gguf: pip install 'rbpx[gguf]'")
    try:
        stat = path.stat()
        return _read_header(path, name, stat.st_size, stat.st_mtime_ns)
    except OSError as problem:
        raise RbpxError(f"model.id={name} cannot be read: {problem.strerror}; check the file") from None


def check_file(path: Path, name: str) -> GgufHeader:
    """The header of a GGUF file that holds one whole language model.

    Raises:
        RbpxError: the extra `gguf` is not installed, the file is damaged, or it is a part of a model or an addition.
    """
    header = read_header(path, name)
    n_parts, kind = header.metadata.get("split.count", 0), header.metadata.get("general.type", "model")
    if n_parts not in (0, 1):
        raise RbpxError(
            f"model.id={name} is one of {quoted(n_parts)} parts; put them together with llama-gguf-split --merge, "
            "then give the whole file"
        )
    if kind != "model":
        raise RbpxError(
            f"model.id={name} is a GGUF file of type {quoted(kind)}, not of a model; give the model's own file"
        )
    return header


@lru_cache(maxsize=64)
def _read_header(path: Path, name: str, n_bytes: int, written_ns: int) -> GgufHeader:
    if n_bytes < 24:
        raise RbpxError(f"model.id={name} is not a GGUF file: it has {n_bytes} bytes; copy it from its source again")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        reader = _Reader(content, name)
        metadata, tensors, end = reader.header()
    if end > n_bytes:
        raise RbpxError(
            f"model.id={name} was cut off: its tensors end at byte {end:,}, and it has {n_bytes:,}; copy it from its "
            "source again"
        )
    return GgufHeader(metadata, tensors)


class _Reader:
    """Goes through the bytes of a file in their order."""

    def __init__(self, content: mmap.mmap, name: str) -> None:
        self._content, self._name, self._at = content, name, 0
        self._end = min(len(content), _HEADER_BYTES)

    def header(self) -> tuple[dict[str, Any], dict[str, GgufTensor], int]:
        """Metadata, tensors, and the byte at which the last tensor ends."""
        if self._bytes(4) != _MAGIC:
            raise RbpxError(f"model.id={self._name} is not a GGUF file: it does not begin with GGUF; check the path")
        version = self._number("I")
        if version not in _VERSIONS:
            known = " and ".join(map(str, _VERSIONS))
            raise RbpxError(
                f"model.id={self._name} is of GGUF version {version}, or of a machine with the other order of bytes; "
                f"versions {known} are read, little-endian: convert it anew"
            )
        n_tensors, n_pairs = self._number("Q"), self._number("Q")
        if max(n_tensors, n_pairs) > _MOST:
            raise self._damaged(f"it claims to have {n_tensors:,} tensors and {n_pairs:,} facts about them")
        metadata: dict[str, Any] = {}
        for _ in range(n_pairs):
            key = self._text()
            if key in metadata:
                raise self._damaged(f"it says {quoted(key)} twice")
            metadata[key] = self._value(self._number("I"))
        if not isinstance(metadata.get("general.architecture"), str):
            raise self._damaged("it does not say its architecture")
        placed = [self._tensor() for _ in range(n_tensors)]
        if not placed:
            raise self._damaged("it has no tensors")
        tensors = {name: tensor for name, tensor, *_ in placed}
        self._check_places(placed, len(tensors))
        self._check_layers(metadata, tensors)
        alignment = metadata.get("general.alignment", _ALIGNMENT)
        if type(alignment) is not int or alignment <= 0:
            raise self._damaged(f"its alignment is {quoted(alignment)}")
        begin = -(-self._at // alignment) * alignment
        return metadata, tensors, begin + max(end for *_, end in placed)

    def _check_places(self, placed: Sequence[tuple[str, GgufTensor, int, int]], n_names: int) -> None:
        """Refuse tensors that share a name or bytes."""
        if n_names < len(placed):
            raise self._damaged(f"its {len(placed):,} tensors have {n_names:,} names")
        for (one, _, _, end), (other, _, begin, _) in pairwise(sorted(placed, key=lambda each: each[2:])):
            if begin < end:
                raise self._damaged(f"tensors {quoted(one)} and {quoted(other)} lie in the same bytes")

    def _check_layers(self, metadata: Mapping[str, Any], tensors: Mapping[str, GgufTensor]) -> None:
        """Refuse more layers than there are weights of, of which transformers would make each before it misses them."""
        said = metadata.get(f"{metadata['general.architecture']}.block_count", 0)
        there = {found[1] for name in tensors if (found := _BLOCK.search(name))}
        if not isinstance(said, int) or said > len(there):
            raise self._damaged(f"it says that it has {quoted(said)} layers, and has tensors of {len(there):,}")

    def _tensor(self) -> tuple[str, GgufTensor, int, int]:
        """Name, shape and type of a tensor, and the bytes at which it begins and ends."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        name, n_dimensions = self._text(), self._number("I")
        if n_dimensions > 8:
            raise self._damaged(f"tensor {quoted(name)} has {n_dimensions} dimensions")
        shape = tuple(reversed([self._number("Q") for _ in range(n_dimensions)]))  # the file begins with the last one
        if 0 in shape:
            raise self._damaged(f"tensor {quoted(name)} has no numbers")
        number, offset = self._number("I"), self._number("Q")
        try:
            kind = GGMLQuantizationType(number)
        except ValueError:
            raise RbpxError(
                f"model.id={self._name} stores {quoted(name)} as type {number}, which gguf does not know; update gguf, "
                "or take the file in another quantisation"
            ) from None
        block, size = GGML_QUANT_SIZES[kind]
        if shape and shape[-1] % block:
            raise self._damaged(f"rows of {quoted(name)} have {shape[-1]} numbers, which no blocks of {block} make")
        return name, GgufTensor(shape, kind.name), offset, offset + prod(shape) // block * size

    def _value(self, kind: int) -> Any:
        """A value; of an array the number of its values."""
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._number(self._code(kind))
        kind, n = self._number("I"), self._number("Q")
        if kind == _STRING:  # a vocabulary has a quarter of a million of them
            length_of, at, last = struct.Struct("<Q").unpack_from, self._at, self._end - 8
            for _ in range(n):
                if at > last:
                    raise self._beyond()
                at += 8 + length_of(self._content, at)[0]
            self._skip(at - self._at)
        else:
            self._skip(struct.calcsize(self._code(kind)) * n)
        return n

    def _code(self, kind: int) -> str:
        if kind not in _NUMBERS:
            raise self._damaged(f"it has a value of type {kind}")
        return f"<{_NUMBERS[kind]}"

    def _text(self) -> str:
        try:
            return self._bytes(self._number("Q")).decode()
        except UnicodeDecodeError:
            raise self._damaged("a name in it is no text") from None

    def _number(self, code: str) -> Any:
        code = code if code.startswith("<") else f"<{code}"
        at, size = self._at, struct.calcsize(code)
        self._skip(size)
        return struct.unpack_from(code, self._content, at)[0]

    def _bytes(self, n: int) -> bytes:
        at = self._at
        self._skip(n)
        return self._content[at : at + n]

    def _skip(self, n: int) -> None:
        if n > self._end - self._at:
            raise self._beyond()
        self._at += n

    def _beyond(self) -> RbpxError:
        return self._damaged(f"its header goes on beyond {self._end:,} bytes")

    def _damaged(self, why: str) -> RbpxError:
        return RbpxError(f"model.id={self._name} is damaged or was cut off: {why}; copy it from its source again")
