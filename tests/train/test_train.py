"""A finished model is what a plain loop gives."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from rbpx.config.recipe import LadderSize
from rbpx.data.corpus import read_stdlib
from rbpx.train.model import build_model
from tests.support.commands import here
from tests.support.trainings import KEYS, a_site, recipe_for, written


@pytest.mark.parametrize(
    ("smoothing", "z_loss", "variant"), [(0, 0, None), (0.1, 0.01, "label_smoothing_0.1_z_loss_0.01")]
)
def test_a_finished_model_is_what_a_plain_loop_gives(
    cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smoothing: float, z_loss: float, variant: str | None
) -> None:
    """Straight to its end, with torch's own cross-entropy and rates written out; the text is read more than once."""
    # the evaluation is one module: all of the standard library takes long to cut into so small a vocabulary
    argparse = dict(read_stdlib())["argparse.py"]
    monkeypatch.setattr("rbpx.train.text.read_stdlib", lambda: [("argparse.py", argparse)])
    monkeypatch.setattr("rbpx.train.text.read_pydoc", list)
    files = {"corpus/own.py": written(600, "matrix"), "corpus/b.py": written(300, "ring")}
    words = ("train", f"text.site={a_site(tmp_path / 'site', files)}", *KEYS)
    output = tmp_path / "ladder"
    asked = (f"objective.label_smoothing={smoothing}", f"objective.z_loss={z_loss}") if variant else ()
    here(*words, *asked, "tokens=2560", "budgets=[640]", "unique_tokens=1000", f"output={output}", cwd=cwd, check=0)
    facts = json.loads((output / "tiny" / "2.56k" / "training.json").read_text())
    assert (facts["steps"], facts["tokens"], facts["unique_tokens"], facts["variant"]) == (20, 2560, 31 * 32, variant)
    assert facts["settings"].get("objective") == ({"label_smoothing": smoothing, "z_loss": z_loss} if variant else None)
    parameters = 300 * 8 + 12 * 64 + 13 * 8 + 2 * 8
    assert facts["training_flops"] == 6 * parameters * 2560
    windows = np.load(output / "text" / "windows.npy")[:31].astype(np.int64)
    model = build_model(recipe_for(tmp_path), LadderSize(8, 1, 1), 42)
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
        ids = torch.from_numpy(windows[[(4 * step + i) % 31 for i in range(4)]])
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.gpt_neox(ids[:, :-1])[0]
        logits = hidden.float() @ model.gpt_neox.embed_in.weight.T
        flat = logits.flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(flat, ids[:, 1:].flatten(), label_smoothing=smoothing)
        (loss + z_loss * (flat.logsumexp(1) ** 2).mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(torch.nn.functional.cross_entropy(flat, ids[:, 1:].flatten()).item())
    assert facts["curve_nats"] == [pytest.approx(np.mean(losses), abs=1e-3)]
    assert facts["final_loss_nats"] == pytest.approx(losses[-1], abs=1e-3)
