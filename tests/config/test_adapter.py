"""Every name of Hydra's inside that rbpx touches stands in one module; each is told by name where it goes."""

import ast
import importlib
import inspect
import re
from pathlib import Path

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


def test_a_name_that_is_imported_is_there() -> None:
    assert len(NAMES) > 10
    assert [(module, name) for module, name in NAMES if not hasattr(importlib.import_module(module), name)] == []


def test_an_attribute_that_is_used_is_there() -> None:
    for module, name, attribute in INSIDE:
        assert hasattr(getattr(importlib.import_module(module), name), attribute), attribute
        assert attribute in ADAPTER.read_text(encoding="utf-8")


def test_the_stores_of_what_hydra_was_told_are_there() -> None:
    from hydra._internal.sources_registry import SourcesRegistry
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins

    Plugins.instance()
    assert isinstance(ConfigStore.instance().repo, dict)
    assert "file" in SourcesRegistry.instance().types


def test_no_other_module_touches_hydra() -> None:
    for path in (PROJECT / "rbpx").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path == ADAPTER or not re.search(r"^\s*(import|from)\s.*\bhydra\b", text, re.MULTILINE):
            continue
        for node in ast.walk(ast.parse(text)):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in named if name.partition(".")[0] == "hydra"], path
