"""What a wheel carries, by the builder itself and without the packing; what it asks for of other packages."""

import re
import tomllib

from hatchling.builders.wheel import WheelBuilder

from tests.support.ladder import bundled_folders, tokenizer_folder
from tests.support.places import CONF, EXPERIMENTS, PACKAGE, PROJECT


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;~! ]", requirement)[0].lower() for requirement in requirements}


def test_an_installed_rbpx_asks_for_no_tool_of_its_developers() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed, tools = names(project["dependencies"]), names(project["optional-dependencies"]["dev"])
    assert {"torch", "duckdb"} <= needed
    assert {"pytest", "mypy", "ruff", "sphinx", "playwright"} <= tools
    assert needed & tools == set()


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
