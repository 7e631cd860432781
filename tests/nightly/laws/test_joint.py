"""How often one law for all k holds its truths, and is rejected where it holds."""

import numpy as np
import pytest

from tests.support.coverage import joint_law, of_joint_law, simplest_where_neighbours_share
from tests.support.draws import plausible


@pytest.mark.parametrize("drift", [0.0, 0.02])
def test_intervals_hold_the_drift_the_bend_and_both_exponents(drift: float) -> None:
    held, whole = of_joint_law(400, drift)
    assert whole >= 0.75 * 400
    assert all(plausible(n, whole) for n in held.values()), (held, whole)


def test_one_law_is_seldom_rejected_where_it_holds() -> None:
    rng = np.random.default_rng(6)
    assert plausible(sum(joint_law(rng).holds for _ in range(400)), 400)


def test_residuals_that_neighbouring_k_share_prefer_no_richer_form() -> None:
    assert simplest_where_neighbours_share(400) > 0.8 * 400
