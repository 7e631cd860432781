"""Opens GGUF files (of llama.cpp) with transformers, and checks that the loaded model matches the file.

transformers silently ignores what it does not know: a tensor, a scaling of positions, a rule of pre-tokenisation; this
module corrects or refuses what differs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import isclose
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.config.model.family import is_gguf
from rbpx.errors import RbpxError, first_line

_ROPE_FACTORS: Final = "rope_freqs.weight"
_FLOATS: Final = ("F64", "F32", "F16", "BF16")  # unquantised types
# llama.cpp's pre-tokenisation rules that transformers' reader takes for GPT-2's. Tokenizers of
# the first kind are indeed GPT-2's; those of the second split digits first.
_AS_GPT2: Final = ("gpt-2", "phi-2", "mpt", "olmo", "jais")
_LONE_DIGITS: Final = ("starcoder", "refact", "command-r", "smollm", "codeshell")
# Architecture keys that transformers' reader ignores, with the equivalent attributes of its configuration,
# which must agree. Any other unread key is refused.
_SAME: Final = {
    "attention.key_length": ("head_dim", "state_size"),
    "attention.value_length": ("head_dim", "state_size"),
    "attention.sliding_window": ("sliding_window",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "expert_feed_forward_length": ("moe_intermediate_size", "intermediate_size"),
    "feed_forward_length": ("intermediate_size", "n_inner", "ffn_dim"),
    "context_length": ("max_position_embeddings", "n_positions"),
    "vocab_size": ("vocab_size",),
}
# Keys without effect at this value
_NOTHING: Final = {"rope.scaling.type": "none", "expert_count": 0, "expert_used_count": 0, "attention.causal": True}
_TURNED, _BASE = "rope.dimension_count", "rope.freq_base"  # checked by the frequencies that are made of them


@dataclass(frozen=True)
class GgufHeader:
    """The metadata of a GGUF file: numbers, booleans and strings by key.

    Attributes:
        n_numbers: of all tensors.
        type: in which most numbers are stored, e.g. Q4_1.
        rope_factors: divisors of the rotary frequencies.
    """

    metadata: Mapping[str, Any]
    n_numbers: int
    type: str
    rope_factors: npt.NDArray[np.float32] | None

    @property
    def architecture(self) -> str:
        """What llama.cpp calls the architecture."""
        return str(self.metadata["general.architecture"])

    @property
    def quantisation(self) -> str | None:
        """As the file names it (Q4_K_M), else the type of most weights; None for 16 or 32 bits."""
        from gguf import LlamaFileType

        try:
            stated = LlamaFileType(self.metadata["general.file_type"]).name.partition("_")[2]  # MOSTLY_Q4_1
        except (KeyError, ValueError):
            stated = ""
        kind = self.type if stated in ("", "GUESSED") else stated
        return None if kind in _FLOATS else kind


def read_header(path: Path, name: str) -> GgufHeader:
    """The header of a GGUF file that holds one whole language model.

    Raises:
        RbpxError: the extra `gguf` is not installed, or the file is damaged, or one part of a model.
    """
    if find_spec("gguf") is None:
        raise RbpxError(f"model.id={name} is a GGUF file, which needs the package gguf: pip install 'rbpx[gguf]'")
    try:
        stat = path.stat()
        header = _read_header(path, stat.st_size, stat.st_mtime_ns)
    except Exception as problem:  # damaged lengths raise anything
        raise RbpxError(
            f"model.id={name} cannot be read as a GGUF file, so it is damaged or was cut off ({first_line(problem)}); "
            "copy it from its source again"
        ) from None
    n_parts = header.metadata.get("split.count", 0)
    if n_parts not in (0, 1):
        raise RbpxError(
            f"model.id={name} is one of {n_parts} parts; put them together with llama-gguf-split --merge, then give "
            "the whole file"
        )
    return header


@lru_cache(maxsize=64)
def _read_header(path: Path, n_bytes: int, written_ns: int) -> GgufHeader:
    from gguf import GGUFReader, GGUFValueType

    reader = GGUFReader(path)
    plain = {key: field for key, field in reader.fields.items() if field.types[0] != GGUFValueType.ARRAY}
    factors = next((np.array(each.data).ravel() for each in reader.tensors if each.name == _ROPE_FACTORS), None)
    if "general.architecture" not in plain:
        raise ValueError("it does not say its architecture")
    sizes: Counter[str] = Counter()
    for tensor in reader.tensors:
        sizes[tensor.tensor_type.name] += tensor.n_elements
    return GgufHeader(
        {key: field.contents() for key, field in plain.items()},
        sizes.total(),
        sizes.most_common(1)[0][0],
        factors,
    )


def stored_as(hashes: Mapping[str, str | None]) -> dict[str, str | None]:
    """The quantisation of the GGUF files among models, given as id -> hash; None cannot be read here."""
    files = [name for name, content in hashes.items() if content is not None and is_gguf(name)]
    return {name: read_header(Path(name).expanduser().resolve(), name).quantisation for name in files}


def _unread(name: str, what: str) -> RbpxError:
    return RbpxError(f"{name} {what}; measure the model's safetensors")


def pretrained(place: Path) -> tuple[Path, dict[str, Any]]:
    """The folder and arguments with which transformers' `from_pretrained` opens a folder or GGUF file."""
    return (place.parent, {"gguf_file": place.name}) if is_gguf(place) else (place, {})


def take_rest(model: Any, path: Path, name: str) -> None:
    """Check a loaded model against its file, and set its rotary frequency factors, which the reader ignores.

    Llama 3 divides the frequency of each pair of dimensions by a factor, stored as a tensor of the file.

    Raises:
        RbpxError: the model lacks something that the file specifies.
    """
    header = read_header(path, name)
    rotary = getattr(model.base_model, "rotary_emb", None)
    buffers = () if rotary is None else rotary.named_buffers()
    frequencies = [buffer for key, buffer in buffers if key.endswith("inv_freq") and not key.startswith("original")]
    _check_rotations(frequencies, header, name)
    n_read = sum(parameter.numel() for parameter in model.parameters())
    factors = header.rope_factors
    if factors is not None:
        if [len(each) for each in frequencies] != [len(factors)] or factors.dtype != np.float32:
            raise _unread(name, f"scales its positions by {_ROPE_FACTORS} in a way that rbpx does not know")
        frequencies[0].div_(frequencies[0].new_tensor(factors))
        n_read += len(factors)
    if n_read != header.n_numbers:
        raise _unread(name, f"has {header.n_numbers:,} numbers in its tensors, of which transformers reads {n_read:,}")
    _check_keys(model, header, name)


def cut_as_llama(tokenizer: Any, path: Path, name: str) -> None:
    """Make a byte-pair tokenizer pre-tokenise as llama.cpp does, where transformers' reader does not.

    Raises:
        RbpxError: the file names an unknown rule.
    """
    from tokenizers import pre_tokenizers
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    metadata = read_header(path, name).metadata
    rule = str(metadata.get("tokenizer.ggml.pre", "default"))
    if metadata.get("tokenizer.ggml.model") != "gpt2" or rule in GGUF_PRE_TOKENIZER_SPLITS or rule in _AS_GPT2:
        return
    if rule not in _LONE_DIGITS:
        raise _unread(name, f"cuts its texts by the rule {rule[:80]}, which transformers does not know")
    backend = tokenizer.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])


def _check_rotations(frequencies: Sequence[Any], header: GgufHeader, name: str) -> None:
    """Check the rotary frequencies of each kind of layer: the i-th of n pairs turns by base^(-i / n) a token."""
    base, n_dimensions = (header.metadata.get(f"{header.architecture}.{key}") for key in (_BASE, _TURNED))
    for key, said, ours in (
        (_TURNED, n_dimensions, {2 * len(each) for each in frequencies}),
        (_BASE, base, {float(each[1].double() ** -len(each)) for each in frequencies if len(each) > 1}),
    ):
        if said is not None and ours and not any(isclose(said, own, rel_tol=1e-3) for own in ours):
            raise _unread(name, f"says {key}={said}, of which transformers makes {max(ours):g}")


def _check_keys(model: Any, header: GgufHeader, name: str) -> None:
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING
    from transformers.integrations.gguf import GGUF_CONFIG_ARCHS

    own, config = header.architecture, model.config.get_text_config(decoder=True)
    if own in GGUF_CONFIG_ARCHS:  # these fail without a key that they need
        return
    read = {key for key, attribute in GGUF_CONFIG_MAPPING.get(own, {}).items() if attribute}
    for full, value in header.metadata.items():
        key = full.removeprefix(f"{own}.")
        if key == full or key in read or key in (_TURNED, _BASE) or _NOTHING.get(key) == value:
            continue
        ours = [getattr(config, attribute, None) for attribute in _SAME.get(key, ())]
        if value not in ours:
            told = next((str(one) for one in ours if one is not None), "nothing")
            raise _unread(name, f"says {full[:80]}={str(value)[:80]}, of which transformers makes {told}")
