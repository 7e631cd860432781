"""Requests that are made without Hydra: equal to those that Hydra composes, and left to it in any doubt."""

from pathlib import Path

import pytest

from rbpx.config.compose import composed, request_of, with_groups
from rbpx.config.places import folder
from rbpx.config.plain import NotPlain, plain_request
from rbpx.config.yaml_files import plain_values
from rbpx.errors import RbpxError

# Values as they are typed, of each type that a key may have, and such as look like another type.
PLAIN = (
    ["size=[3k, 1.2m]", "doc=0", "k=[1,10]", "S=[1e9,2.5e10]", 'store="a b/c"', "format=json", "sql_timeout_s=60"],
    ["dtype=null", "fresh=true", "family=yes", "variant=none", "chance=0.25", "k=log", "a=x-1", "b=x.5", "axis=D"],
    ["base=1e5", "flops=1E20", "a=-3", "b=null", "store=../a/b-1.c", "laws=[rbp,cross_entropy]", "output=/tmp/x"],
    ["model=pythia", "model.revision=step1000", "dataset=file", "dataset.path=x.txt", "protocol=rolling"],
    ["dataset.path=x.txt", "model.family=m", "delta=1", "S=1e29", "anchor=null", "fresh=false"],
)
LEFT = (
    *("size=007", "a=.5", "a=inf", "limit=abc", "limit=3.5", "nosuch=1", "model=nosuch", "dataset=null", "plot=1"),
    *("k=[1,[2]]", "size=a b", "a=${store}", "a='x'", "parallel=tensor", "+k=1", "~k", "model@x=ladder", "k=1,2"),
    *("experiment=demo", "hydra.verbose=true", "a.b=1", "study.name=x", "imports=[a]", 'output="???"', "size=", "-m"),
    *("dataset=../model/ladder", "slices={a: b}", 'a="\\"', "ties=Mid", "size=1_000", "a=x\n", "model=[ladder]"),
)


@pytest.mark.parametrize("overrides", PLAIN)
def test_a_plain_line_means_what_hydra_makes_of_it(overrides: list[str]) -> None:
    overrides = with_groups("analyse", overrides)
    assert repr(plain_request("analyse", overrides)) == repr(request_of(composed("analyse", overrides), "analyse"))


@pytest.mark.parametrize("primary", ["audit", "measure"])
def test_each_verb_begins_from_its_own_file(primary: str) -> None:
    assert repr(plain_request(primary, [])) == repr(request_of(composed(primary, []), primary))


def test_every_file_of_conf_has_the_values_that_omegaconf_reads() -> None:
    from omegaconf import OmegaConf

    paths = [path for group in ("model", "dataset", "protocol") for path in (folder("conf") / group).glob("*.yaml")]
    plain = {path: values for path in paths if (values := plain_values(path)) is not None}
    assert len(plain) > 0.9 * len(paths) > 40
    for path, values in plain.items():
        assert repr(values) == repr(OmegaConf.to_container(OmegaConf.load(path)) or {}), path


@pytest.mark.parametrize("override", LEFT)
def test_what_is_more_or_wrong_is_left_to_hydra(override: str) -> None:
    with pytest.raises(NotPlain):
        plain_request("analyse", [override])


def test_a_key_that_stands_twice_is_left_to_hydra() -> None:
    with pytest.raises(NotPlain):
        plain_request("analyse", ["k=1", "k=2"])


@pytest.mark.parametrize("text", ["a: 1e5", "a: 2020-01-01", "a: 1\na: 2", "a: ${oc.env:HOME}", "# @package x\na: 1"])
def test_yaml_that_omegaconf_may_read_in_another_way_is_left_to_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert plain_values(tmp_path / "x.yaml") is None


def test_a_refused_value_is_refused_in_the_words_of_the_request() -> None:
    with pytest.raises(RbpxError, match="limit=0 is not a whole number from 1"):
        plain_request("analyse", ["limit=0"])


def test_the_store_of_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RBPX_STORE", "/some/where")
    assert plain_request("analyse", []).store == "/some/where"
    assert plain_request("analyse", ["store=here"]).store == "here"
