"""Quantised weights: rounded as torchao says, the head and S untouched, and another run than without."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from rbpx.config.options import Quantise
from rbpx.errors import RbpxError
from rbpx.models import load
from rbpx.models.load import load_model
from tests.support.commands import here
from tests.support.stores import run_folders

CPU = torch.device("cpu")
has_torchao = pytest.mark.skipif(
    find_spec("torchao") is None, reason="torchao is not installed: pip install 'rbpx[quantise]'"
)


@has_torchao
@pytest.mark.parametrize(("kind", "levels", "group"), [("int8", 256, 32), ("int4", 16, 32), ("nf4", 16, 64)])
def test_weights_are_rounded_to_so_many_levels_and_the_head_is_not(
    kind: str, levels: int, group: int, tiny_checkpoint: Callable[..., Path]
) -> None:
    folder = str(tiny_checkpoint("gpt_neox"))
    plain = load_model(folder, None, "float32", CPU)
    rounded = load_model(folder, None, "float32", CPU, quantise=Quantise(kind))
    counts = [(each.non_embedding_params, each.total_params, each.weights_hash) for each in (plain, rounded)]
    assert counts[0] == counts[1]
    of_plain = dict(plain.model.named_modules())
    n_layers = 0
    for name, layer in rounded.model.named_modules():
        if not isinstance(layer, torch.nn.Linear):
            continue
        before_OI = of_plain[name].weight.detach()
        if layer is rounded.model.get_output_embeddings():
            assert torch.equal(layer.weight.detach(), before_OI)
            continue
        n_layers += 1
        # what the layer multiplies by, without asking torchao how it keeps it
        after_OI = layer(torch.eye(layer.in_features)).detach().T - (0 if layer.bias is None else layer.bias[:, None])
        apart_G = (after_OI - before_OI).reshape(-1, group).abs().amax(1)
        largest_G = before_OI.reshape(-1, group).abs().amax(1)
        if kind == "int8":  # one scale a row
            apart_G = (after_OI - before_OI).abs().amax(1)
            largest_G = before_OI.abs().amax(1)
        step = {"int8": 1 / 127, "int4": 1 / 7, "nf4": 0.31}[kind]  # the widest of nf4 is between its two lowest levels
        assert (apart_G <= 0.51 * step * largest_G * 1.02).all(), name
        assert apart_G.max() > 0
        if kind == "int4":
            in_steps = {len(set(map(float, torch.round(of * 1e6).tolist()))) for of in after_OI.reshape(-1, group)}
            assert max(in_steps) <= levels
    assert n_layers == 8


@has_torchao
def test_a_model_without_linear_layers_is_refused(tiny_checkpoint: Callable[..., Path]) -> None:
    with pytest.raises(RbpxError, match="has no linear layers that torchao knows"):
        load_model(str(tiny_checkpoint("gpt2")), None, "float32", CPU, quantise=Quantise.int8)


def test_without_torchao_a_quantised_model_fails_in_one_line_and_stops_no_other(
    tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "find_spec", lambda name: None)
    store = tmp_path / "store"
    words = ("model=ladder", "size=3k", "dataset=pydoc", "limit=2", "--store", store)
    answer = here("measure", "-m", *words, "model.quantise=null,int8", cwd=cwd, check=1)
    assert "model.quantise=int8 needs torchao, which is not installed: pip install 'rbpx[quantise]'" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert len(run_folders(store)) == 1
