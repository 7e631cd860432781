"""A key of text holds what was typed, or is refused: on a command line, nested, in a sweep, in a file and in Python."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

import pytest

from rbpx.api.keywords import requests
from rbpx.cli.registry import asking
from rbpx.config.hydra.adapter import read_values
from rbpx.config.hydra.compose import Overrides, compose
from rbpx.config.keys.key import name_of
from rbpx.config.request import KEYS
from rbpx.errors import RbpxError
from tests.support.composed import composed_once, here

TYPED: Final = ("1e5", "007", "1_000", "true", "inf", "1.50", "3e-4")
HUB: Final = "model=hub model.id=ORG/NAME"
HUB: Final = "model=hub model.id=ORG/NAME"
NAMES: Final = {  # of any type to Hydra, since they may be lists
    "model": ("variant", "revision", "quantise"),
    "dataset": ("split", "subset", "revision"),
    "engine": ("model", "version"),
}


def texts(kind: Any, within: str = "") -> Iterator[str]:
    """The keys of a schema whose type is text, with dots."""
    for name, each in get_type_hints(kind).items():
        of = get_args(each)[0] if NoneType in get_args(each) else each
        if of is str:
            yield f"{within}{name}"
        elif is_dataclass(of):
            yield from texts(of, f"{within}{name}.")


def held(verb: str, key: str, typed: str, *words: str) -> Any:
    """What a key of a request holds; None where it is refused."""
    try:
        value = compose(asking(verb), [*words, f"{key}={typed}"])
    except RbpxError:
        return None
    for name in key.split("."):
        value = getattr(value, name)
    return value


def test_every_key_of_text_holds_what_was_typed_or_is_refused() -> None:
    keys = {key: verb for verb in ("measure", "fit", "import") for key in texts(asking(verb).schema())}
    assert {"store", "output", "model.family", "dataset.name", "dataset.path", "engine.url", "file"} <= {*keys}
    for key, verb in keys.items():
        for typed in TYPED:
            word = f"{key}={typed}"
            with suppress(RbpxError):
                Overrides(asking(verb), [word]).check_texts([word])
                assert str(read_values(word)[1][0]) == typed, word  # as OmegaConf writes it into a text


def test_every_name_that_may_be_a_list_holds_what_was_typed_or_is_refused() -> None:
    needs = {"model": HUB, "dataset": "dataset=hub dataset.hub=ORG/NAME", "engine": f"{HUB} engine=vllm"}
    with composed_once():
        for group, names in NAMES.items():
            for name in names:
                for typed in ("1e5", "true"):
                    assert held("plan", f"{group}.{name}", typed, *needs[group].split()) in (None, typed), name
    for key in (key for key in KEYS.values() if key.read is name_of):
        for value in (1e5, 7, True, math.inf, ["a"]):
            with pytest.raises(RbpxError, match=rf"{key.name}=.* was read as (a number|true or false|a list); quote"):
                key.meaning(value)


def test_a_number_is_refused_with_how_to_keep_it() -> None:
    for words, quoted in (
        (f"{HUB} model.variant=3e-4", "model.variant="),
        (f"{HUB} model.family=1e5", "'model.family=\"1e5\"'"),
        ("dataset=pydoc dataset.name=1e-3", "'dataset.name=\"1e-3\"'"),
        ("+model.sizes.a.id=1_000", "'model.sizes.a.id=\"1_000\"'"),
    ):
        with pytest.raises(RbpxError, match="was read as a number; quote it") as refusal:
            compose(asking("plan"), words.split())
        assert quoted in str(refusal.value)
    assert held("plan", "dataset.name", '"1e-3"', "dataset=pydoc") == "1e-3"
    assert held("plan", "dataset.name", "2024", "dataset=pydoc") == "2024"


def test_a_sweep_is_refused_before_it_loses_a_text(cwd: Path) -> None:
    words = ("model=ladder", "size=3k", "dataset=pydoc")
    for listed, said in (("7,1e3", "1000.0"), ("choice(a,1_000)", "1000"), ("true,a", "True")):
        answer = here("plan", *words, "-m", f"dataset.name={listed}", cwd=cwd)
        assert answer.returncode == 2
        assert f"dataset.name={listed}: {said} was read as" in answer.stderr


def test_a_file_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / "mine.yaml"
    for text, place in (
        ("family: 1e5\nsizes: {a: {id: ORG/NAME}}\n", "model.family: 100000.0"),
        ("family: mine\nsizes: {a: {id: ORG/NAME, variant: 007}}\n", "model.sizes.a.variant: 7"),
    ):
        path.write_text(text)
        with pytest.raises(RbpxError, match=rf"mine\.yaml: {place} was read as a number; put it in quotes"):
            compose(asking("plan"), ["model=mine", f"--config-dir={tmp_path}"])
    path.write_text("family: 2024\nsizes: {a: {id: ORG/NAME, variant: '007'}}\n")
    model = compose(asking("plan"), ["model=mine", f"--config-dir={tmp_path}"]).model
    assert (model.family, model.sizes["a"].variant) == ("2024", "007")


def test_texts_of_python_stay_texts() -> None:
    for text in TYPED:
        (request,) = requests(asking("fit"), {"dataset.name": text}, "store")
        assert request.dataset.name == text
    with pytest.raises(RbpxError, match=r"dataset\.name=true was read as true or false"):
        requests(asking("fit"), {"dataset.name": True}, "store")
