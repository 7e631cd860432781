"""Text stays text: what is typed for a key of text is what its request holds, from a command line and from Python."""

from pathlib import Path
from typing import Any, Final

import pytest

from rbpx.api.keywords import requests
from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.config.grid import members
from rbpx.config.model.family import ModelConfig
from rbpx.errors import RbpxError
from tests.support.composed import composed_once
from tests.support.composing import request_of

TYPED: Final = ("1e5", "007", "1_000", "true", "inf", "1.50", "3e-4", "12e4567890123456", ".5", "-1", "NaN", "plain")
HUB: Final = "model=hub model.id=ORG/NAME"
NAMES: Final = {  # text to Hydra, or of any type, since they may be lists
    "plan": ("model.variant", "model.revision", "dataset.split", "dataset.subset", "size", "engine.model"),
    "fit": ("family", "source", "variant", "output"),
    "compare": ("a", "b"),
    "import": ("source", "family", "dataset", "variant", "engine_version", "size"),
}
NEEDS: Final = {
    "model": HUB,
    "dataset": "dataset=hub dataset.hub=ORG/NAME",
    "engine": f"{HUB} engine=vllm dtype=float32",
    "import": "source=them",
}


def held(request: Any, key: str) -> Any:
    for name in key.split("."):
        request = getattr(request, name)
    return request


def test_a_name_comes_into_the_request_as_it_was_typed() -> None:
    with composed_once():
        for verb, keys in NAMES.items():
            for key in keys:
                needs = NEEDS.get(key.partition(".")[0] if "." in key else verb, "").split()
                for typed in TYPED if key == "output" else ("1e5", "true", "12e4567890123456", "3e-4"):
                    found = held(request_of(verb, [*needs, f"{key}={typed}"]), key)
                    assert found in (typed, [typed]), (verb, key)


def test_each_element_of_a_list_and_of_a_sweep_stays_text() -> None:
    request = request_of("plan", ["model=ladder", "size=[1e3,007,3k]", "model.variant=null"])
    assert (request.size, request.model.variant) == (["1e3", "007", "3k"], None)
    words = ["dataset=pydoc", "dataset.name=7,1e3,choice(a,1_000)".replace("choice(a,1_000)", "1_000"), "model=ladder"]
    swept = compose(asking("plan"), words, sweeps=True).requests
    assert [each.dataset.name for each in swept] == ["7", "1e3", "1_000"]


def test_a_glob_with_brackets_is_text_and_a_list_within_a_sweep_is_a_list(tmp_path: Path) -> None:
    words = ["model=ladder", "dataset=file", "dataset.path=a/[bc].txt,d[1].txt"]
    swept = compose(asking("plan"), [*words, "size=3k,[7k,25k]"], sweeps=True).requests
    sizes = [["3k"], ["7k", "25k"]]
    assert [(each.dataset.path, each.size) for each in swept] == [
        (path, size) for path in ("a/[bc].txt", "d[1].txt") for size in sizes
    ]
    assert request_of("plan", [*words[:2], 'dataset.path="a/[bc].txt"']).dataset.path == "a/[bc].txt"
    folders = [tmp_path / "m2b", tmp_path / "m10b"]
    for folder in folders:
        folder.mkdir()
    found = members(ModelConfig(id=f"{tmp_path}/m*", family="m"), None)[1]
    assert [each.model for each in found] == [*map(str, folders)]
    with pytest.raises(RbpxError, match=r"m3\* matches no folder"):
        members(ModelConfig(id=f"{tmp_path}/m3*"), None)


def test_a_number_in_a_file_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / "mine.yaml"
    for text, place in (
        ("family: 1e5\nsizes: {a: {id: ORG/NAME}}\n", "model.family: 100000.0"),
        ("family: mine\nsizes: {a: {id: ORG/NAME, variant: 007}}\n", "model.sizes.a.variant: 7"),
    ):
        path.write_text(text)
        with pytest.raises(RbpxError, match=rf"mine\.yaml: {place} was read as a number; put it in quotes"):
            request_of("plan", ["model=mine"], tmp_path)
    path.write_text("family: 2024\nsizes: {a: {id: ORG/NAME, variant: '007'}}\n")
    model = request_of("plan", ["model=mine"], tmp_path).model
    assert (model.family, model.sizes["a"].variant) == ("2024", "007")


def test_texts_of_python_stay_texts_and_what_is_none_is_refused() -> None:
    for text in TYPED:
        (request,) = requests(asking("fit"), {"dataset.name": text, "source": text, "family": [text]}, "store")
        assert (request.dataset.name, request.source, request.family) == (text, [text], [text])
    for value in (1e5, 7, True, [7]):
        with pytest.raises(RbpxError, match=r"source=.* was read as"):
            requests(asking("fit"), {"source": value}, "store")
    with pytest.raises(RbpxError, match="dataset=3 is not one name"):
        requests(asking("fit"), {"dataset": 3}, "store")
