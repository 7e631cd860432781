"""Every name of Hydra's inside that rbpx touches stands in one module; each is told by name where it goes."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from rbpx.config.hydra import adapter
from tests.support.places import PROJECT

ADAPTER = Path(inspect.getfile(adapter))
TREE = ast.parse(ADAPTER.read_text(encoding="utf-8"))
NAMES = [
    (node.module or "", each.name)
    for node in ast.walk(TREE)
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("hydra", "omegaconf"))
    for each in node.names
]
# Attributes of these that no documentation promises.
INSIDE = [
    ("hydra._internal.core_plugins.file_config_source", "FileConfigSource", "_normalize_file_name"),
    ("hydra._internal.core_plugins.file_config_source", "FileConfigSource", "_get_header_dict"),
    ("hydra._internal.core_plugins.basic_sweeper", "BasicSweeper", "split_arguments"),
    ("hydra.core.global_hydra", "GlobalHydra", "config_loader"),
    ("hydra.core.override_parser.overrides_parser", "OverridesParser", "parse_overrides"),
]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_name_that_is_imported_is_there(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize(("module", "name", "attribute"), INSIDE)
def test_an_attribute_that_is_used_is_there(module: str, name: str, attribute: str) -> None:
    assert hasattr(getattr(importlib.import_module(module), name), attribute)
    assert attribute in ADAPTER.read_text(encoding="utf-8")


def test_the_stores_of_what_hydra_was_told_are_there() -> None:
    from hydra._internal.sources_registry import SourcesRegistry
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins

    Plugins.instance()
    assert isinstance(ConfigStore.instance().repo, dict)
    assert "file" in SourcesRegistry.instance().types


def test_no_other_module_touches_hydra() -> None:
    others = [path for path in (PROJECT / "rbpx").rglob("*.py") if path != ADAPTER]
    for path in others:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in named if name.partition(".")[0] == "hydra"], path
