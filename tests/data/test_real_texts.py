"""Real texts under the paper's families' own tokenizers: the tokens that the authors' code would score."""

import json
from pathlib import Path

import numpy as np

from tests.support.authors import THEIRS, scored_by_the_authors
from tests.support.commands import here
from tests.support.published_texts import FILES, published
from tests.support.real_tokenizers import build_real

ARCHITECTURES = ("gpt2", "opt", "gpt_neox")  # without a special token in front, with one, with one that is not added
LIMIT = 2


def test_official_scores_the_authors_tokens_of_a_real_text(shared_data: Path, cwd: Path, tmp_path: Path) -> None:
    (name, n), tokenizers = FILES["gsm8k"], shared_data / "data" / "tokenizers"
    path, store = shared_data / "data" / name, tmp_path / "store"
    models = {arch: build_real(arch, tokenizers, tmp_path / arch, THEIRS) for arch in ARCHITECTURES}
    words = ["model=hub", f"model.id=[{','.join(map(str, models.values()))}]", "model.family=real"]
    words += ["model.pickled=true", f"limit={LIMIT}", "dataset=gsm8k", f"dataset.path={path}", "protocol=official"]
    here("measure", *words, f"store={store}", cwd=cwd, check=0)
    asked = "SELECT size, doc_id, position, token_id FROM tokens JOIN runs USING (run_id) ORDER BY ALL"
    found = json.loads(here("sql", asked, f"store={store}", "--format", "json", cwd=cwd, check=0).stdout)
    texts = published("gsm8k", path)
    drawn = [texts[i] for i in np.random.default_rng(42).permutation(n)[:LIMIT]]
    for arch, folder in models.items():
        mine = [(row["doc_id"], row["position"], row["token_id"]) for row in found if row["size"] == arch]
        assert mine == scored_by_the_authors(folder, drawn), arch
        assert mine
