"""Measures the losses of a run's documents at several temperatures, summed per document and node of beta.

Shapes: N tokens, D documents, J nodes of beta.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from rbpx.measure.reading.reading import Batch, Places, Reading, read_batch
from rbpx.models.load import LoadedModel
from rbpx.ranks.tempered import BETAS, Floats, temper_hidden
from rbpx.store.schema import TEMPERATURES

_MIN_LOGITS_FOR_TILES = 1 << 25  # fewer take less time than loading numba

Part = tuple[npt.NDArray[np.int32], Floats, Floats]
"""Documents of a batch, the scored tokens of each, and sums over them [D, 3, J]."""


def measure_temperatures(run_id: str, reading: Reading) -> pa.Table:
    """Sums of loss, slope and curvature over the scored tokens of each document at each node; relation `temperatures`.

    Raises:
        MeasureError: as in `Reading.measure`.
    """
    parts = reading.with_tiles_from(_MIN_LOGITS_FOR_TILES).measure(_temper_batch)
    doc_id, row = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    n_D, sums_D3J = np.zeros(len(doc_id)), np.zeros((len(doc_id), 3, len(BETAS)))
    np.add.at(n_D, row, np.concatenate([part[1] for part in parts]))
    np.add.at(sums_D3J, row, np.concatenate([part[2] for part in parts]))
    J = len(BETAS)
    columns = {
        "run_id": [run_id] * (len(doc_id) * J),
        "doc_id": np.repeat(doc_id, J).astype(np.int32),
        "beta": np.tile(BETAS, len(doc_id)),
        "n_tokens": np.repeat(n_D, J).astype(np.int64),
    }
    names = ("sum_loss_nats", "sum_slope_nats", "sum_curvature_nats")
    columns |= {name: sums_D3J[:, at].ravel() for at, name in enumerate(names)}
    return pa.table(columns, schema=TEMPERATURES)


def _temper_batch(loaded: LoadedModel, batch: Batch) -> Callable[[], Part]:
    whole = partial(temper_hidden, head=torch.Tensor.float, vocab_size=loaded.head.vocab_size)
    part = _summed(*read_batch(loaded, batch, _at_once(loaded.head.temper), _at_once(whole))())
    return lambda: part


def _at_once(temper: Callable[[torch.Tensor, torch.Tensor], Floats]) -> Callable[..., Callable[[], Floats]]:
    """Adapt a measure of states and targets that computes its value at once."""

    def measure(states: torch.Tensor, targets: torch.Tensor) -> Callable[[], Floats]:
        losses_N3J = temper(states, targets)
        return lambda: losses_N3J

    return measure


def _summed(places: Places, losses_N3J: Floats) -> Part:
    doc_id, row_N = np.unique(places.doc_id_N, return_inverse=True)
    sums_D3J = np.zeros((len(doc_id), *losses_N3J.shape[1:]))
    np.add.at(sums_D3J, row_N, losses_N3J)
    return doc_id, np.bincount(row_N).astype(np.float64), sums_D3J
