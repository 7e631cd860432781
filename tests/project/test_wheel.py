"""What a wheel carries, by the builder itself and without the packing; what it asks for of other packages."""

import ast
import re
import sys
import tomllib

from hatchling.builders.wheel import WheelBuilder

from tests.support.ladder import bundled_folders, tokenizer_folder
from tests.support.places import CONF, EXPERIMENTS, PACKAGE, PROJECT


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;~! ]", requirement)[0].lower() for requirement in requirements}


# What a dependency brings with it, and what no line of ours imports though others need it here.
BROUGHT = {"llvmlite": "numba", "markupsafe": "jinja2", "safetensors": "transformers", "triton": "torch"}
NOT_IMPORTED = {"zstandard"}  # datasets reads packed texts with it
DISTRIBUTED_AS = {"hydra": "hydra-core", "vl_convert": "vl-convert-python"}


def imported() -> set[str]:
    """What the code imports, wherever in it."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                found.add(node.module.partition(".")[0])
    return {DISTRIBUTED_AS.get(name, name) for name in found - sys.stdlib_module_names - {"rbpx"}}


def test_each_dependency_is_imported_and_what_is_imported_is_a_dependency_or_an_extra() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed, extras = names(project["dependencies"]), project["optional-dependencies"]
    of_extras = {name for extra in extras if extra != "dev" for name in names(extras[extra])}
    assert needed - imported() == NOT_IMPORTED
    assert imported() - needed - of_extras == BROUGHT.keys()
    assert BROUGHT.keys() & needed == set()
    assert needed & names(extras["dev"]) == set()


def test_a_wheel_carries_all_that_a_command_reads_and_nothing_beside_the_package() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(PROJECT)).recurse_included_files()}
    ours = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    wanted = {f"rbpx/{path.relative_to(PACKAGE).as_posix()}" for path in ours}
    wanted |= {f"rbpx/_conf/{path.relative_to(CONF).as_posix()}" for path in CONF.rglob("*.yaml")}
    wanted |= {f"rbpx/_experiments/{path.name}" for path in EXPERIMENTS.glob("*.yaml")}
    assert wanted - packed == set()
    assert {"rbpx/py.typed", "rbpx/_experiments/published/gemstones_checkpoints.csv"} <= packed
    assert {path.partition("/")[0] for path in packed} == {"rbpx"}
    assert not {path for path in packed if path.startswith("rbpx/_experiments/ladder/")}
    models = bundled_folders()
    assert len(models) >= 7
    for model in models:
        for file in (model / "model.safetensors", tokenizer_folder(model) / "tokenizer.json"):
            assert f"rbpx/{file.relative_to(PACKAGE).as_posix()}" in packed
