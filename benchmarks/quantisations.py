"""What rounding a real model costs, from 8 bits to 2: bits per byte, hits, and the divergence of what it predicts.

SmolLM2-135M-Instruct is in its package as Q4_1. Its weights are multiplied out to 32 bits and rounded again by
llama.cpp's own functions (xllamacpp), one file a quantisation; `rbpx measure` reads documents of pydoc with each, and
`compare` says what each has lost. A store keeps the probability of the true token alone, so KL(float32 || quantised)
over the whole vocabulary is computed here, by both models on the same tokens.

    .venv/bin/python benchmarks/quantisations.py --folder FOLDER --documents 20
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.requantised import rewritten
from rbpx.data.corpus import draw, read_pydoc
from rbpx.models.load import LoadedModel, load_model
from tests.support.gguf_files import build_llama, write_gguf
from tests.support.real_model import LLAMA_CPP, install, real_model

KINDS = ("Q8_0", "Q6_K", "Q5_0", "Q4_K_S", "Q4_0", "Q3_K_S", "Q2_K")
WINDOW = 512
KS = (1, 10, 100)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--tiny", action="store_true", help="a random model of two layers, without llama.cpp")
    asked = parser.parse_args()
    name, kinds = "SmolLM2-135M", KINDS
    if asked.tiny:
        name, kinds = "tiny", ("Q8_0", "Q4_0")
        base = write_gguf(build_llama(asked.folder / "plain"), asked.folder / f"{name}-F32.gguf")
        library = None
    else:
        base = rewritten(real_model(asked.folder / "smollm2"), asked.folder / f"{name}-F32.gguf", "F32")
        (library,) = install(LLAMA_CPP, asked.folder / "xllamacpp").glob("xllamacpp/*.so")
    texts = [document.text for document in draw(read_pydoc(), asked.documents, 42)]
    (asked.folder / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    heads = ("", "MiB", "bits a byte", "lost, 95 %", *(f"RBP_{k} lost (hits lost)" for k in KS), "KL, nats")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    model = _load(base)
    for kind in kinds:
        file = rewritten(base, asked.folder / f"{name}-{kind}.gguf", kind, library)
        row = _compared(asked.folder, name, base, file, kind)
        kl = _divergence(model, _load(file), texts)
        print(f"| {kind} | {file.stat().st_size / 2**20:.0f} | {row} | {kl:.5f} |", flush=True)


def _compared(folder: Path, name: str, base: Path, file: Path, kind: str) -> str:
    """Measure both files, where that is not done, and say what `compare` says of them."""
    text = ("dataset=file", f"dataset.path={folder / 'text.jsonl'}", "--store", folder / "store")
    files = f"model.gguf=[{base.name},{file.name}]"
    _rbpx("measure", "model=hub", f"model.id={folder}", files, "model.family=real", *text)
    sides = (f"real/{name}:float32", f"real/{name}:{kind}")
    said = _rbpx("compare", *sides, f"k=[{','.join(map(str, KS))}]", "--store", folder / "store", "--format", "json")
    rows = json.loads(said)
    whole = next(row for row in rows if row["kind"] == "part" and row["by"] == "text")
    hits = {row["k"]: row for row in rows if row["kind"] == "hits"}
    lost = " | ".join(f"{hits[k]['rbp_a'] - hits[k]['rbp_b']:.2%} ({hits[k]['lost']:.1%})" for k in KS)
    change = f"{whole['change']:+.4f} ({whole['change_lo']:+.4f} to {whole['change_hi']:+.4f})"
    return f"{whole['bits_b']:.4f} | {change} | {lost}"


def _rbpx(*words: object) -> str:
    command = [sys.executable, "-m", "rbpx", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _load(file: Path) -> LoadedModel:
    return load_model(str(file), None, "float32", torch.device("cpu"))


def _divergence(p: LoadedModel, q: LoadedModel, texts: list[str]) -> float:
    """Mean over predicted positions of sum p ln(p / q)."""
    total, n = 0.0, 0
    for text in texts:
        ids: Any = torch.tensor([p.tokenizer(text)["input_ids"][: min(WINDOW, p.model.config.max_position_embeddings)]])
        with torch.inference_mode():
            p_TV, q_TV = (each.model(input_ids=ids).logits[0, :-1].log_softmax(-1) for each in (p, q))
            total += float((p_TV.exp() * (p_TV - q_TV)).sum(-1).double().sum())
        n += len(p_TV)
    return total / n


if __name__ == "__main__":
    main()
