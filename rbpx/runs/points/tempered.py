"""Reads the losses of the documents of a run at several temperatures, as the verb `temperature` stored them."""

from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.store.sql import ask


@dataclass(frozen=True, eq=False)
class Curves:
    """Losses of the D documents of a run at J nodes of beta = 1 / T.

    Attributes:
        n_D: scored tokens of each document.
        sums_D3J: sums over them of the loss (nats), of its slope and of its curvature in beta.
        beta_J: the nodes, ascending.
    """

    n_D: Floats
    sums_D3J: Floats
    beta_J: Floats

    def replicates(self, weights_BD: Floats) -> Floats:
        """Mean loss, slope and curvature of each replicate, [B, 3, J]; NaN without a token."""
        n_B = weights_BD @ self.n_D
        n_B[n_B == 0] = np.nan
        sums = weights_BD @ self.sums_D3J.reshape(len(self.n_D), -1)
        return (sums / n_B[:, None]).reshape(len(weights_BD), *self.sums_D3J.shape[1:])


def loss_curves(connection: duckdb.DuckDBPyConnection, run_id: str, n_documents: int) -> Curves | None:
    """The losses of one run by document, zero without a scored token; None where they were not measured."""
    table = ask(connection, "temperature_curves", run_id=run_id)
    if not table.num_rows:
        return None
    beta_J = np.unique(table["beta"].to_numpy())
    doc_id_D = table["doc_id"].to_numpy()[:: len(beta_J)]
    n_D, sums_D3J = np.zeros(n_documents), np.zeros((n_documents, 3, len(beta_J)))
    n_D[doc_id_D] = table["n_tokens"].to_numpy()[:: len(beta_J)]
    for at, name in enumerate(("sum_loss_nats", "sum_slope_nats", "sum_curvature_nats")):
        sums_D3J[doc_id_D, at] = table[name].to_numpy().reshape(len(doc_id_D), len(beta_J))
    return Curves(n_D, sums_D3J, beta_J)
