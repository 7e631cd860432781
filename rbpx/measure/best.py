"""Records the tokens of the greatest logits at each scored position, with log-probabilities, in a pass of its own.

Shapes: N tokens, D hidden width, V vocabulary.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from rbpx.config.keys.runs import N_BEST
from rbpx.measure.reading.reading import Batch, Reading, read_batch
from rbpx.models.load import LoadedModel
from rbpx.ranks.definition import Map, arriving
from rbpx.store.schema import BEST

_CHUNK: Final = 128  # positions
_GPU_CHUNK: Final = 1024
_Best = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
_Part = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]


def best_tokens(run_id: str, reading: Reading) -> pa.Table:
    """The rows of the relation `best` of a run, in the order of `tokens`; raises as `Reading.measure`."""
    parts = reading.measure(_best_of_batch)
    doc_N, position_N, ids_N5, logprobs_N5 = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((position_N, doc_N))
    columns = {
        "run_id": pa.array([run_id], pa.string()).take(pa.array(np.zeros(reading.n_tokens, np.int32))),
        "doc_id": doc_N[order],
        "position": position_N[order].astype(np.int32),
        "token_ids": _lists(ids_N5[order]),
        "logprobs": _lists(logprobs_N5[order]),
    }
    return pa.table(columns, schema=BEST)


def _lists(values_N5: npt.NDArray[Any]) -> pa.ListArray:
    n, width = values_N5.shape
    return pa.ListArray.from_arrays(np.arange(0, n * width + 1, width, dtype=np.int32), values_N5.ravel())


def _best_of_batch(loaded: LoadedModel, batch: Batch) -> Callable[[], _Part]:
    whole = partial(_best, logits=torch.Tensor.float)
    of_states = partial(_best, logits=loaded.head.logits or torch.Tensor.float)
    found = read_batch(loaded, batch, of_states, whole)

    def part() -> _Part:
        places, (ids_N5, logprobs_N5) = found()
        return places.doc_id_N, places.position_N, ids_N5, logprobs_N5

    return part


def _best(hidden_ND: Tensor, targets_N: Tensor, logits: Map) -> Callable[[], _Best]:
    """Ids and log-probabilities, each [N, 5]."""
    ids, logprobs = [], []
    for hidden_nD in hidden_ND.split(_CHUNK if hidden_ND.device.type == "cpu" else _GPU_CHUNK):
        logits_nV = logits(hidden_nD)
        best_n5, ids_n5 = torch.topk(logits_nV, min(N_BEST, logits_nV.shape[1]), dim=1)
        logprobs.append((best_n5 - torch.logsumexp(logits_nV, dim=1, keepdim=True)).float())
        ids.append(ids_n5.to(torch.int32))
    ids_N5, logprobs_N5 = arriving(torch.cat(ids)), arriving(torch.cat(logprobs))
    return lambda: (ids_N5(), logprobs_N5())
