"""Keys are declared once: each verb has its own and refuses all others, and each key refuses what it does not mean."""

from typing import Any, Final

import pytest

from rbpx.cli.registry import asking, names
from rbpx.config.keys.key import keys_of
from rbpx.config.keys.output import Looks
from rbpx.config.keys.predictions import Points
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
WRONG: Final[dict[str, tuple[Any, ...]]] = {
    "size": (3, []),
    "family": (3, ""),
    "source": (1e5,),
    "variant": (["a", 3],),
    "limit": (-5, 2**31),
    "seed": (-1, 2**63),
    "shard": ("3/2", True),
    "best": (3,),
    "tokens_per_batch": (0,),
    "memory": ("20GiB", {"gpu": 1}),
    "tolerance": (0.0, -1.0),
    "k": (0, 1.5, True, "all", [1, 0]),
    "n": (0, "log"),
    "resamples": (0, 100_001),
    "laws": ("nosuch", ["rbp", "x"]),
    "method": ("nosuch",),
    "size_by": ("all", ["active"] * 2, None),
    "last": (0,),
    "inference_tokens": (0.0, -1.0),
    "E": ("a", "1.7 +- 0", "1.7 +-", True, [1.7]),
    "pin": (1.7, "E", {"E": "a"}, [1.7]),
    "S": (0, -1, True, "big", 1e31),
    "D": (0, [1e9, -1]),
    "axis": ("X", "cros@stdlib", "cross_entropy@", None),
    "x": (0, "big", [2.9, -1]),
    "register": ("a b", 3),
    "form": ("nosuch",),
    "delta": (0.0,),
    "flops": (-1.0, ["a"]),
    "unique_tokens": (0.0,),
    "next": (0, 1001),
    "features": ("nosuch",),
    "held_out": (3,),
    "drop": (1.0, -0.1),
    "smooth": (0,),
    "anchor": ([0], [0, 2], "x"),
    "starts": ({"y": 1}, {"h": "x"}),
    "bounds": ({"b": [1, 0]}, {"b": 1}),
    "chance": (1.0, -0.5, "x", {"task": 2}),
    "doc": (-1,),
    "a": (3,),
    "b": (3,),
    "base": (3,),
    "slices": ("nosuch", {}, {"a": ""}, 3),
    "least": (0,),
    "top": (0, -5),
    "group": (3,),
    "sql_timeout_s": (0.0,),
    "sql_memory_mib": (0,),
    "width": (0.5, 41.0),
    "font_size": (3.0,),
}


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


def test_a_key_refuses_what_it_does_not_mean() -> None:
    said = {}
    for key, value in [(key, value) for key, values in WRONG.items() for value in values]:
        try:
            KEYS[key].meaning(value)
            said[key, str(value)] = "nothing"
        except RbpxError as problem:
            said[key, str(value)] = str(problem)
    assert {case: line for case, line in said.items() if not line.startswith(case[0]) or "\n" in line} == {}


def test_the_wrong_values_are_of_all_keys_whose_type_does_not_say_it() -> None:
    by_type = {"model", "dataset", "protocol", "parallel", "engine", "study", "imports", "analyses", "experiment"}
    free = {name for name, key in KEYS.items() if key.kind in (Any, int, float) or "|" in str(key.kind)}
    without = {"dtype", "ties", "legend", "font", "output"}  # Enums, and text of any kind
    assert free - by_type - without <= set(WRONG)


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
        Points(D=1e9)
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
            Points(S=typed)


def test_one_value_of_a_list_is_a_list_of_one() -> None:
    asked = request_of("run", ["analyses=fit", "dataset=file", "dataset.path=README.md", "dataset.fields=text"])
    assert (asked.analyses, asked.dataset.fields) == (["fit"], ["text"])
