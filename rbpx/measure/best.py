"""The best tokens at each scored place: windows in, the ids with the greatest logits and their log-probabilities out.

Ranks are counted in another pass (`rbpx.measure.extract`), so keeping these changes no bit of them.

Shapes: N tokens, D hidden width, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from rbpx.config.keys.runs import N_BEST
from rbpx.data.windows import Window
from rbpx.errors import MeasureError
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import Advance, measure_batches, read_batch
from rbpx.models.load import LoadedModel
from rbpx.store.schema import BEST

_CHUNK: Final = 128  # positions whose logits are held at a time
_Best = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
_Part = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]


def best_tokens(
    run_id: str,
    loaded: LoadedModel,
    windows: Sequence[Window],
    processes: ProcessGroup,
    tokens_per_batch: int,
    advance: Advance,
) -> pa.Table:
    """The best tokens of each scored place, in the order of the relation `tokens`; relation `best`.

    Args:
        run_id: whose tokens these are.
        loaded: its model.
        windows: as in `measure_windows`, with the arguments after it.
        processes: the same.
        tokens_per_batch: the same.
        advance: the same.

    Raises:
        MeasureError: as in `measure_windows`.
    """
    parts = measure_batches(_best_of_batch, loaded, windows, processes, tokens_per_batch, advance)
    doc_N, position_N, ids_N5, logprobs_N5 = (np.concatenate(column) for column in zip(*parts, strict=True))
    n_tokens = sum(window.n_scored for window in windows)
    if len(doc_N) != n_tokens:
        raise MeasureError(f"{len(doc_N):,} places were returned for {n_tokens:,} scored tokens; nothing was written")
    order = np.lexsort((position_N, doc_N))
    columns = {
        "run_id": pa.array([run_id], pa.string()).take(pa.array(np.zeros(n_tokens, np.int32))),
        "doc_id": doc_N[order],
        "position": position_N[order].astype(np.int32),
        "token_ids": _lists(ids_N5[order]),
        "logprobs": _lists(logprobs_N5[order]),
    }
    return pa.table(columns, schema=BEST)


def _lists(values_N5: npt.NDArray[Any]) -> pa.ListArray:
    n, width = values_N5.shape
    return pa.ListArray.from_arrays(np.arange(0, n * width + 1, width, dtype=np.int32), values_N5.ravel())


def _best_of_batch(loaded: LoadedModel, batch: list[Window]) -> _Part:
    logits = loaded.head.logits

    def of_states(hidden_ND: Tensor, targets_N: Tensor) -> _Best:
        assert logits is not None, "a head without a product is measured whole"
        chunks = [_best_of_logits(logits(chunk_ND)) for chunk_ND in hidden_ND.split(_CHUNK)]
        ids, logprobs = zip(*chunks, strict=True)
        return np.concatenate(ids), np.concatenate(logprobs)

    def of_whole(logits_NV: Tensor, targets_N: Tensor) -> _Best:
        return _best_of_logits(logits_NV.float())

    places, (ids_N5, logprobs_N5) = read_batch(loaded, batch, of_states, of_whole)
    return places.doc_id_N, places.position_N, ids_N5, logprobs_N5


def _best_of_logits(logits_NV: Tensor) -> _Best:
    best_N5, ids_N5 = torch.topk(logits_NV, min(N_BEST, logits_NV.shape[1]), dim=1)
    logprobs_N5 = best_N5 - torch.logsumexp(logits_NV, dim=1, keepdim=True)
    return ids_N5.to(torch.int32).cpu().numpy(), logprobs_N5.float().cpu().numpy()
