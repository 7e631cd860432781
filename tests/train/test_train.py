"""A finished model is what a plain loop gives."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.ladder.model import build_model
from experiments.ladder.train import read_recipe
from rbpx.data.corpus import read_stdlib
from tests.support.trainings import a_site, recipe_file, trained, written


@pytest.mark.parametrize(("smoothing", "variant"), [(0, None), (0.1, "label_smoothing_0.1")])
def test_a_finished_model_is_what_a_plain_loop_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smoothing: float, variant: str | None
) -> None:
    """Straight to its end, with torch's own cross-entropy and rates written out; the text is read more than once."""
    # the evaluation is one module: all of the standard library takes long to cut into so small a vocabulary
    argparse = dict(read_stdlib())["argparse.py"]
    monkeypatch.setattr("experiments.ladder.text.read_stdlib", lambda: [("argparse.py", argparse)])
    monkeypatch.setattr("experiments.ladder.text.read_pydoc", list)
    site = a_site(tmp_path / "site", {"corpus/own.py": written(60, "matrix"), "corpus/b.py": written(30, "ring")})
    path, output = recipe_file(tmp_path, site, budgets={"tiny": [640]}), tmp_path / "ladder"
    trained("--recipe", path, f"label_smoothing={smoothing}", "tokens=2560", f"output={output}")
    facts = json.loads((output / "tiny" / "2.56k" / "training.json").read_text())
    windows = np.load(output / "text" / "windows.npy").astype(np.int64)
    n = len(windows)
    assert n < 80  # of the 20 steps
    assert (facts["steps"], facts["tokens"], facts["unique_tokens"], facts["variant"]) == (20, 2560, n * 32, variant)
    parameters = 300 * 8 + 12 * 64 + 13 * 8 + 2 * 8
    assert facts["training_flops"] == 6 * parameters * 2560
    recipe = read_recipe(str(path))
    model = build_model(recipe, recipe.shapes.tiny, 42)
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in model.parameters() if (p.ndim > 1) == is_matrix], "weight_decay": decay}
         for is_matrix, decay in ((True, 0.1), (False, 0.0))],
        betas=(0.9, 0.95),
    )  # fmt: skip
    losses = []
    for step in range(20):
        share = min(1.0, (step + 1) / 4) if step < 16 else 1 - math.sqrt((step - 16) / 4)
        for group in optimizer.param_groups:
            group["lr"] = 0.04 / math.sqrt(8) * share
        ids = torch.from_numpy(windows[[(4 * step + i) % n for i in range(4)]])
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.gpt_neox(ids[:, :-1])[0]
        logits = hidden.float() @ model.gpt_neox.embed_in.weight.T
        flat = logits.flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(flat, ids[:, 1:].flatten(), label_smoothing=smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(torch.nn.functional.cross_entropy(flat, ids[:, 1:].flatten()).item())
    assert facts["curve_nats"] == [pytest.approx(np.mean(losses), abs=1e-3)]
    assert facts["final_loss_nats"] == pytest.approx(losses[-1], abs=1e-3)
