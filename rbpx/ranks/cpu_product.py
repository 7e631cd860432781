"""CPU kernel: the product of states with a tile of the head's matrix, in AVX-512 instructions.

Products of bfloat16 numbers are exact and added in float32, as the definition of a rank requires, at twice the speed of
float32. The innermost loop forms `ROWS` x `COLUMNS` logits, which fill the registers, and reads weights stored in its
order.

Shapes: n positions, v entries of the vocabulary in a tile, D hidden width, K words of 32 bits of a state: D float32 or
D / 2 pairs of bfloat16; P panels of `COLUMNS` entries.
"""

from collections.abc import Callable
from typing import Any

import torch
from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic
from torch import Tensor

from rbpx.ranks.definition import linear_float32

ROWS = 6  # with four vectors of sixteen logits each, 24 of a core's 32 registers
COLUMNS = 64
_WORDS_AT_A_TIME = 1024  # a panel then has 256 KiB and stays in a core's cache for all rows
# numba's target, which NUMBA_CPU_FEATURES and NUMBA_ENABLE_AVX may narrow; other instructions crash.
_FEATURES = (config.CPU_FEATURES if config.CPU_FEATURES is not None else get_host_cpu_features()).split(",")
HAS_AVX512 = "+avx512f" in _FEATURES
HAS_BFLOAT16 = HAS_AVX512 and "+avx512bf16" in _FEATURES


def best_dtype(hidden_ND: Tensor, weight_VD: Tensor) -> torch.dtype:
    """The precision in which states and weights are multiplied without rounding either of them."""
    both_short = hidden_ND.dtype == weight_VD.dtype == torch.bfloat16
    return torch.bfloat16 if both_short and HAS_BFLOAT16 and weight_VD.shape[1] % 2 == 0 else torch.float32


def whole_blocks(hidden_nD: Tensor) -> Tensor:
    """States, zero-padded to a multiple of `ROWS` rows."""
    return _padded(hidden_nD, ROWS)


def tile_product(weight_vD: Tensor, bias_v: Tensor | None, dtype: torch.dtype) -> Callable[[Tensor, Tensor], Tensor]:
    """Reorder the weights of a tile (on the CPU) once; return a function from (states, buffer) to float32 logits.

    The states [n, D] are `whole_blocks` of `best_dtype`; the buffer has room for n x v logits, v rounded up to a
    multiple of `COLUMNS`. The logits [n, v] may lie in it, so they last until its next use.
    """
    if not HAS_AVX512:
        wide_vD = weight_vD.float()
        return lambda hidden_nD, _: linear_float32(hidden_nD, wide_vD, bias_v)
    n_entries = len(weight_vD)
    weight_vK = _padded(weight_vD.to(dtype), COLUMNS).contiguous().view(torch.int32)
    panels_PKC = weight_vK.view(-1, COLUMNS, weight_vK.shape[1]).transpose(1, 2).contiguous().numpy()
    bias_v = torch.zeros(n_entries) if bias_v is None else bias_v.float()
    padded_bias_v = _padded(bias_v[:, None], COLUMNS)[:, 0].numpy()
    multiply = _multiply_bfloat16 if dtype == torch.bfloat16 else _multiply_float32

    def product(hidden_nD: Tensor, buffer: Tensor) -> Tensor:
        n, width = len(hidden_nD), len(padded_bias_v)
        tile_nv = buffer[: n * width].view(n, width)
        multiply(hidden_nD.view(torch.int32).numpy(), panels_PKC, padded_bias_v, tile_nv.numpy())
        return tile_nv[:, :n_entries].contiguous()

    return product


def _padded(rows_nD: Tensor, multiple: int) -> Tensor:
    missing = -len(rows_nD) % multiple
    return torch.nn.functional.pad(rows_nD, (0, 0, 0, missing)) if missing else rows_nD


class _BFloat(ir.Type):  # type: ignore[misc]
    """LLVM's bfloat, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"


_LONG, _INT = ir.IntType(64), ir.IntType(32)
_FLOATS = ir.VectorType(ir.FloatType(), 16)
_PAIRS = ir.VectorType(_BFloat(), 32)


def _add_float32(builder: Any, sums: Any, lanes: Any, columns: Any) -> Any:
    kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32")
    return builder.call(function, [lanes, columns, sums])


def _add_bfloat16(builder: Any, sums: Any, lanes: Any, columns: Any) -> Any:
    kind = ir.FunctionType(_FLOATS, [_FLOATS, _PAIRS, _PAIRS])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512bf16.dpbf16ps.512")
    return builder.call(function, [sums, builder.bitcast(lanes, _PAIRS), builder.bitcast(columns, _PAIRS)])


def _block_kernel(add: Any, word: Any) -> Any:
    """An intrinsic that writes a block of logits: `ROWS` rows of four vectors.

    Its arguments are addresses: of the states, a panel of weights, the initial sums and the output, each but the panel
    followed by its row stride in bytes; then the number of words to add. `add` maps (builder, sums, a state's word in
    all lanes, the columns' words) to the sums plus their products; `word` is a type of 32 bits.
    """
    words, block = ir.VectorType(word, 16), [(row, c) for row in range(ROWS) for c in range(COLUMNS // 16)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        states, by_state, panel, first, by_first, out, by_out, n_words = arguments

        def pointer(kind: Any, address: Any, by_row: Any, row: int, offset: Any) -> Any:
            of_row = builder.add(address, builder.mul(by_row, _LONG(row)))
            return builder.inttoptr(builder.add(of_row, offset), kind.as_pointer())

        sums = {place: cgutils.alloca_once(builder, _FLOATS) for place in block}  # registers, once it is optimised
        for row, c in block:
            beginning = builder.load(pointer(_FLOATS, first, by_first, row, _LONG(64 * c)), align=4)
            builder.store(beginning, sums[row, c])
        with cgutils.for_range(builder, n_words) as loop:
            offset = builder.mul(loop.index, _LONG(4))
            columns = [
                builder.load(pointer(words, panel, offset, COLUMNS, _LONG(64 * c)), align=4)
                for c in range(COLUMNS // 16)
            ]
            for row in range(ROWS):
                of_state = builder.load(pointer(word, states, by_state, row, offset))
                one_lane = builder.insert_element(words(ir.Undefined), of_state, _INT(0))
                all_lanes = builder.shuffle_vector(one_lane, words(ir.Undefined), ir.VectorType(_INT, 16)(None))
                for c, of_columns in enumerate(columns):
                    total = add(builder, builder.load(sums[row, c]), all_lanes, of_columns)
                    builder.store(total, sums[row, c])
        for row, c in block:
            to = pointer(_FLOATS, out, by_out, row, _LONG(64 * c))
            builder.store(builder.load(sums[row, c]), to, align=4)
        return context.get_dummy_value()

    def block_kernel(
        _: Any, states: Any, by_state: Any, panel: Any, first: Any, by_first: Any, out: Any, by_out: Any, n_words: Any
    ) -> Any:
        return types.void(*[types.int64] * 8), generate

    return intrinsic(block_kernel)


_float32_block = _block_kernel(_add_float32, ir.FloatType())
_bfloat16_block = _block_kernel(_add_bfloat16, _INT)


@njit(inline="always")
def _addresses(hidden_nK: Any, panels_PKC: Any, bias_v: Any, tile_nv: Any, word: int, p: int, i: int) -> Any:
    """What a block is formed from; later words of a state are added to what the earlier ones gave."""
    by_state, by_out = hidden_nK.strides[0], tile_nv.strides[0]
    states = hidden_nK.ctypes.data + i * by_state + 4 * word
    panel = panels_PKC.ctypes.data + p * panels_PKC.strides[0] + 4 * COLUMNS * word
    out = tile_nv.ctypes.data + i * by_out + 4 * COLUMNS * p
    first, by_first = (bias_v.ctypes.data + 4 * COLUMNS * p, 0) if word == 0 else (out, by_out)
    n_words = min(_WORDS_AT_A_TIME, panels_PKC.shape[1] - word)
    return states, by_state, panel, first, by_first, out, by_out, n_words


@njit(nogil=True, cache=True)
def _multiply_float32(hidden_nK: Any, panels_PKC: Any, bias_v: Any, tile_nv: Any) -> None:
    for word in range(0, panels_PKC.shape[1], _WORDS_AT_A_TIME):
        for p in range(panels_PKC.shape[0]):
            for i in range(0, hidden_nK.shape[0], ROWS):
                _float32_block(*_addresses(hidden_nK, panels_PKC, bias_v, tile_nv, word, p, i))


@njit(nogil=True, cache=True)
def _multiply_bfloat16(hidden_nK: Any, panels_PKC: Any, bias_v: Any, tile_nv: Any) -> None:
    for word in range(0, panels_PKC.shape[1], _WORDS_AT_A_TIME):
        for p in range(panels_PKC.shape[0]):
            for i in range(0, hidden_nK.shape[0], ROWS):
                _bfloat16_block(*_addresses(hidden_nK, panels_PKC, bias_v, tile_nv, word, p, i))
