"""Keys are declared once: each verb has its own and refuses all others, and each key refuses what it does not mean."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from rbpx.cli.registry import asking, names
from rbpx.config.keys.key import keys_of
from rbpx.config.keys.output import Looks
from rbpx.config.keys.predictions import Predicted
from rbpx.config.keys.runs import GridKeys
from rbpx.config.request import KEYS
from rbpx.errors import RbpxError
from rbpx.questions.decide import DecideKeys
from rbpx.questions.downstream import DownstreamKeys
from rbpx.questions.surface import SurfaceKeys
from tests.support.composing import request_of

PLAIN: Final = [verb for verb in names() if not asking(verb).is_of_file]
OF_STUDIES: Final = {"study", "imports"}  # what a file of experiments/ says
OF_HYDRA: Final = {"defaults", "hydra"}
_, *WRONG = Path(__file__).with_name("wrong.txt").read_text(encoding="utf-8").splitlines()[1:]


def test_every_key_is_of_a_verb_and_has_a_line_of_help() -> None:
    of_verbs = {name for verb in PLAIN for name in asking(verb).keys}
    assert set(KEYS) == of_verbs
    assert {name for name, key in KEYS.items() if not key.help} == OF_STUDIES


def test_a_verb_has_no_key_of_others_and_refuses_one() -> None:
    for verb in PLAIN:
        fields = set(asking(verb).schema().__dataclass_fields__) - OF_HYDRA
        assert fields <= {*asking(verb).keys, *(KEYS if asking(verb).performs else ())}, verb
    with pytest.raises(RbpxError, match="fit has no key chance; it is a key of other verbs"):
        request_of("fit", ["chance=1"])


def test_a_key_refuses_what_it_does_not_mean_in_one_line_that_begins_with_it() -> None:
    other = {}
    for case in WRONG:
        typed, _, says = case.partition(" => ")
        ((key, value),) = yaml.safe_load(typed).items()
        try:
            KEYS[key].meaning(value)
            said = "nothing"
        except RbpxError as problem:
            said = str(problem)
        if not said.startswith(key) or "\n" in said or not re.search(says, said):
            other[case] = said
    assert other == {}


def test_each_verb_takes_the_defaults_of_its_keys() -> None:
    for verb in PLAIN:
        kind = asking(verb).kind
        plain = kind()
        for name, key in keys_of(kind).items():
            assert key.meaning(key.default) == getattr(plain, name) or name == "parallel", (verb, name)


def test_keys_that_exclude_each_other_are_refused_together() -> None:
    with pytest.raises(RbpxError, match="add device=split"):
        GridKeys(memory={"cpu": 1})
    with pytest.raises(RbpxError, match="D= needs S="):
        Predicted(D=1e9)
    with pytest.raises(RbpxError, match="is of figures in files"):
        Looks(width=3.3)


def test_a_study_may_give_keys_of_its_questions_and_a_line_only_those_of_its_own() -> None:
    for name in ("chance", "family"):
        with pytest.raises(RbpxError, match=f"run has no key {name}"):
            request_of("run", [f"{name}=null"])
    assert request_of("run", ["analyses=[downstream]", "chance=0.3"]).to(DownstreamKeys).chance == 0.3
    assert request_of("surface", ["+experiment=ladder_surface"]).typed["form"] is not None


def test_large_numbers_are_taken_as_people_write_them() -> None:
    request = DecideKeys(S=["1B", 2e9], D="1.5T", flops=["10k", "1e18"])
    assert (request.S, request.D, request.flops) == ([1e9, 2e9], [1.5e12], [1e4, 1e18])
    assert SurfaceKeys(unique_tokens="20B", delta="1e-3").unique_tokens == 2e10
    with pytest.raises(RbpxError, match=r"unique_tokens=\[1, 2\] is not a positive number"):
        SurfaceKeys(unique_tokens=[1, 2])
    for typed in ("1Q", "-1B", "1,5"):
        with pytest.raises(RbpxError, match=r"S="):
            Predicted(S=typed)


def test_one_value_of_a_list_is_a_list_of_one() -> None:
    asked = request_of("run", ["analyses=fit", "dataset=file", "dataset.path=README.md", "dataset.fields=text"])
    assert (asked.analyses, asked.dataset.fields) == (["fit"], ["text"])
