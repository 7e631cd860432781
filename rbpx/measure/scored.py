"""How much of the drawn documents a run has scored."""

from collections.abc import Sequence

import pyarrow.parquet as pq

from rbpx.data.corpus import Document
from rbpx.store.store import Store


def scored_share(documents: Sequence[Document], store: Store, run_id: str) -> float | None:
    """The share of the bytes of its documents that lie in the windows of a run; None if no document was cut.

    A document was cut if its window is full and ends before the text does: tokenizers may leave out white space at the
    end of a text that they have read whole.

    Args:
        documents: the sample that was measured, in order.
        store: where the run is.
        run_id: of a run that reads the first window of each document, or all of them.
    """
    window = store.manifest(run_id)["window"]
    columns = pq.read_table(store.part(run_id, "documents"), columns=["n_tokens", "n_bytes"])
    read = zip(columns["n_tokens"].to_pylist(), columns["n_bytes"].to_pylist(), strict=True)
    sizes = [len(document.text.encode("utf-8", "surrogatepass")) for document in documents]
    left_out = [size - n if n_tokens >= window else 0 for size, (n_tokens, n) in zip(sizes, read, strict=True)]
    return 1 - sum(left_out) / sum(sizes) if any(left_out) else None
