"""Real texts under the real tokenizers of the paper's four families: the tokens that the authors' code would score."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.authors import THEIRS, scored_by_the_authors
from tests.support.commands import here
from tests.support.published_texts import FILES, published
from tests.support.real_tokenizers import ROWS, build_real

LIMIT = 2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def models(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    return {arch: build_real(arch, shared_data / "data" / "tokenizers", place / arch, THEIRS) for arch in ROWS}


SOME = ("gpt2", "opt")  # without a special token in front, and with one
OTHERS = tuple(arch for arch in ROWS if arch not in SOME)
CELLS = [pytest.param(name, archs, id=f"{name}, {archs[0]}") for name in FILES for archs in (SOME, OTHERS)]


@pytest.mark.parametrize(("name", "archs"), CELLS)
def test_official_scores_the_authors_tokens_of_a_real_text(
    name: str, archs: tuple[str, ...], models: dict[str, Path], shared_data: Path, store: Path, tmp_path: Path
) -> None:
    path, n = shared_data / "data" / FILES[name][0], FILES[name][1]
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    ids = ",".join(str(models[arch]) for arch in archs)
    words = ["model=hub", f"model.id=[{ids}]", "model.family=real", "model.pickled=true", f"limit={LIMIT}"]
    words += [f"dataset={name}", f"dataset.path={path}", "protocol=official", f"store={store}"]
    here("measure", *words, cwd=cwd, check=0)
    asked = "SELECT size, doc_id, position, token_id FROM tokens JOIN runs USING (run_id) "
    asked += f"WHERE dataset = '{name}' ORDER BY ALL"
    found = json.loads(here("sql", asked, f"store={store}", "--format", "json", cwd=cwd, check=0).stdout)
    texts = published(name, path)
    if name == "wikitext":  # whose blank lines hold a space in this file, as they do not on the hub
        texts = [re.sub(r"(?m)^ $", "", text) for text in texts]
    drawn = [texts[i] for i in np.random.default_rng(42).permutation(n)[:LIMIT]]
    for arch in archs:
        mine = [(row["doc_id"], row["position"], row["token_id"]) for row in found if row["size"] == arch]
        assert mine == scored_by_the_authors(models[arch], drawn), arch
        assert mine
