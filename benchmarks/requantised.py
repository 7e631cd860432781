"""Writes a model's GGUF file in another quantisation, for benchmarks that compare these."""

import ctypes
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.gguf_reader import GGUFReader

from tests.support.gguf_files import Array, written

_FILE_TYPES = {"F32": 0, "Q4_0": 2, "Q8_0": 7, "Q5_0": 8, "Q2_K": 10, "Q3_K_S": 11, "Q4_K_S": 14, "Q6_K": 18}
_IN_BLOCKS_OF_32 = {"Q2_K": "IQ4_NL", "Q3_K": "IQ4_NL", "Q4_K": "Q5_0", "Q6_K": "Q8_0"}


def rewritten(file: Path, path: Path, kind: str, library: Path | None = None) -> Path:
    """Write a model's GGUF file with its matrices in another quantisation, if it is not there.

    Args:
        file: the model.
        path: the new file.
        kind: as F32, Q8_0, or Q4_K_S, where all matrices are of Q4_K. As llama.cpp does, a matrix whose rows no blocks
            of 256 make is given the nearest quantisation in blocks of 32.
        library: that holds llama.cpp's `ggml_quantize_chunk`, which rounds by the best scale of each block; None rounds
            with the package gguf, which has no blocks of 256.
    """
    if path.is_file():
        return path
    reader = GGUFReader(file)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    writer.add_file_type(_FILE_TYPES[kind])
    for tensor in reader.tensors:
        weights = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        of_kind = gguf.GGMLQuantizationType[kind.removesuffix("_S") if weights.ndim == 2 else "F32"]
        if weights.ndim == 2 and weights.shape[1] % gguf.GGML_QUANT_SIZES[of_kind][0]:
            of_kind = gguf.GGMLQuantizationType[_IN_BLOCKS_OF_32[of_kind.name]]
        blocks = _by_llama_cpp(weights, of_kind, library) if library and weights.ndim == 2 else None
        writer.add_tensor(tensor.name, gguf.quantize(weights, of_kind) if blocks is None else blocks, raw_dtype=of_kind)
    return written(writer, path)


def _by_llama_cpp(weights: Array, kind: Any, library: Path) -> Array:
    """The blocks of a matrix, in bytes [rows, bytes of a row]."""
    rows, width = weights.shape
    block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.empty((rows, width // block * size), np.uint8)
    quantise = ctypes.CDLL(str(library)).ggml_quantize_chunk
    quantise.restype = ctypes.c_size_t
    weights = np.ascontiguousarray(weights)
    start, n_rows, n_columns = (ctypes.c_int64(n) for n in (0, rows, width))
    written = quantise(kind.value, weights.ctypes, blocks.ctypes, start, n_rows, n_columns, None)
    assert written == blocks.nbytes
    return blocks
