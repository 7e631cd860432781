"""What a command waits for before it does anything: a library that its verb does not need is not read."""

import json
import subprocess
import sys
from pathlib import Path

from rbpx.cli.registry import names
from tests.support.commands import command_environment
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store

MODELS = {"torch", "transformers", "accelerate", "datasets", "tokenizers", "safetensors", "huggingface_hub", "numba"}
FITS = {"scipy", "lmfit"}
STORE = {"duckdb", "pandas"}
PICTURES = {"altair", "vl_convert"}

# One interpreter for all, each stage with what it may read beyond those before it.
PROGRAM = """
import contextlib, io, json, sys
stages = json.loads(sys.argv[1])
read = {}
for name, lines in stages.items():
    for line in lines:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if name == "import":
                import rbpx
                dir(rbpx)
            elif name == "notebook":
                rbpx.open(line[0]).fit(k=1, resamples=20).frame()
            else:
                from rbpx.__main__ import main
                assert main(line) == 0, line
        assert name in ("import", "notebook") or printed.getvalue().strip(), line
    read[name] = sorted(sys.modules)
print(json.dumps(read))
"""


def test_each_command_reads_only_the_libraries_that_it_needs(tmp_path: Path) -> None:
    store, measured, cwd = (tmp_path / name for name in ("store", "measured", "cwd"))
    write_store(store, Truth(), seed=0, n_documents=5, n_tokens=20)
    cwd.mkdir()
    cell = ["model=ladder", "size=3k", "dataset=pydoc", "limit=1", "--store", str(measured)]
    here("measure", *cell, cwd=cwd, check=0)
    of_store = ["--store", str(store)]
    stages = {
        "import": [[]],
        "help": [["--help"], *([verb, "--help"] for verb in names())],
        "configuration": [["--cfg", "job"]],
        "store": [["sql", "FROM runs", *of_store], ["status", *of_store], ["export", "runs", *of_store]],
        "fit": [["fit", "k=1", "resamples=20", *of_store]],
        "measured": [["run", *cell, "resamples=20"]],
        "notebook": [[str(store)]],
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(stages)],
        cwd=cwd, env=command_environment({}), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    read = {name: set(modules) for name, modules in json.loads(done.stdout).items()}
    assert read["import"].isdisjoint({"torch", "numpy", "duckdb", "hydra", "pandas", "altair"})
    assert read["help"].isdisjoint({"torch", "transformers", "duckdb", "scipy", "lmfit", "hydra"})
    assert "hydra" in read["configuration"]
    assert read["configuration"].isdisjoint(MODELS | FITS | STORE | PICTURES)
    assert "duckdb" in read["store"]
    assert read["store"].isdisjoint(MODELS | FITS | PICTURES)
    assert "scipy" in read["fit"]
    assert read["fit"].isdisjoint(MODELS | PICTURES | {"lmfit", "scipy.stats"})
    assert read["measured"].isdisjoint(MODELS | PICTURES)
    assert read["notebook"].isdisjoint({"torch", "transformers", "datasets", "altair"})
