"""Measures how other processes slow down measuring on several threads, by how long OpenMP's threads spin in a wait.

Real commands measure cells of the bundled ladder, and a model of the shape of pythia-14m with random weights: alone on
the machine, beside a process that always computes, beside one that computes half of the time and sleeps the other half,
and as two jobs at once. The settings take turns. Tokens a second are those that the command prints: for a cell, without
imports and loading; of two jobs, those of one.

    python benchmarks/threads.py
    python benchmarks/threads.py --rounds 1 --documents 4 --settings rbpx spinning --beside none
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "rbpx": {},  # GOMP_SPINCOUNT=1000
    "spinning": {"GOMP_SPINCOUNT": "300000"},  # what libgomp does by itself
    "no-spin": {"GOMP_SPINCOUNT": "0"},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "one-thread": {"OMP_NUM_THREADS": "1"},
}
WAKING = """
import time
while True:
    until = time.perf_counter() + 0.005
    while time.perf_counter() < until:
        pass
    time.sleep(0.005)
"""
NEIGHBOURS = {
    "none": [],
    "computes": ["while True: pass"],
    "wakes": [WAKING],
    "another-job": [],
}
SIZES = "25k,200k,3.2m"
SAID = re.compile(r"\] (\S+ \S+) on \S+: [\d,]+ tokens at ([\d,]+) tokens/s")


def build_pythia(folder: Path) -> Path:
    """A checkpoint of the shape of pythia-14m, with random weights and the ladder's tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    shape = {"hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}
    config = AutoConfig.for_model("gpt_neox", vocab_size=50304, max_position_embeddings=2048, **shape)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(PROJECT / "rbpx" / "ladder").save_pretrained(folder)
    return folder


def commands(pythia: Path, documents: int) -> list[list[str]]:
    """The commands to measure: the ladder, then the model with a wide vocabulary."""
    rbpx = [sys.executable, "-m", "rbpx", "measure", "dataset=pydoc", f"limit={documents}"]
    wide = ["model=hub", f"model.id={pythia}", "model.family=shape", "size=pythia-14m"]
    return [[*rbpx, "-m", "model=ladder", f"size={SIZES}"], [*rbpx, *wide]]


@contextmanager
def neighbours(programs: list[str]) -> Iterator[None]:
    """Run some processes beside the block."""
    with ExitStack() as stack:
        for program in programs:
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", program]))
            stack.callback(process.kill)
        yield


def measure(command: list[str], setting: dict[str, str], n_jobs: int) -> dict[str, float]:
    """Tokens a second of each model; those of the slower job."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **setting, "PYTHONPATH": str(PROJECT)}
        jobs = [
            subprocess.Popen(
                [*command, f"store={folder}/{n}"],
                env=environment,
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            )
            for n in range(n_jobs)
        ]
        said = [SAID.findall(job.communicate()[1]) for job in jobs]
    return {name: min(float(dict(each)[name].replace(",", "")) for each in said) for name, _ in said[0]}


def main() -> None:
    """Print a table for each set of neighbours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--beside", nargs="+", choices=NEIGHBOURS, default=list(NEIGHBOURS))
    asked = parser.parse_args()
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as folder:
        lines = commands(build_pythia(Path(folder) / "pythia-14m"), asked.documents)
        for name in asked.beside:
            found: dict[str, dict[str, list[float]]] = {setting: {} for setting in asked.settings}
            n_jobs = 2 if name == "another-job" else 1
            with neighbours(NEIGHBOURS[name]):
                for _ in range(asked.rounds):
                    for setting in asked.settings:
                        for line in lines:
                            for model, speed in measure(line, SETTINGS[setting], n_jobs).items():
                                found[setting].setdefault(model, []).append(speed)
            models = list(next(iter(found.values())))
            table = Table("tokens/s, median", *models, title=f"beside: {name}")
            for setting, speeds in found.items():
                table.add_row(setting, *(f"{median(speeds[model]):,.0f}" for model in models))
            console.print(table)


if __name__ == "__main__":
    main()
