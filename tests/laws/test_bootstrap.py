"""Weights of the document bootstrap, against the moments of the multinomial distribution."""

import numpy as np
import pytest

from rbpx.laws.bootstrap import document_weights


def test_every_resample_draws_as_many_documents_as_there_are() -> None:
    weights_BD = document_weights(37, 50, seed=1)
    assert weights_BD.shape == (50, 37)
    assert weights_BD.dtype == np.int64
    assert (weights_BD >= 0).all()
    assert (weights_BD.sum(axis=1) == 37).all()


def test_the_weights_have_the_mean_variance_and_covariance_of_a_multinomial() -> None:
    n, B = 10, 200_000
    weights_BD = document_weights(n, B, seed=2)
    covariance = np.cov(weights_BD.T)
    # Multinomial: mean 1, variance 1 - 1/n, covariance -1/n; sampling error of a mean of B is about 1/sqrt(B).
    assert np.abs(weights_BD.mean(axis=0) - 1).max() < 5 / np.sqrt(B)
    assert np.abs(np.diag(covariance) - (1 - 1 / n)).max() < 10 / np.sqrt(B)
    assert np.abs(covariance[~np.eye(n, dtype=bool)] + 1 / n).max() < 10 / np.sqrt(B)


def test_the_same_seed_draws_the_same_documents_and_another_seed_others() -> None:
    assert np.array_equal(document_weights(20, 5, seed=3), document_weights(20, 5, seed=3))
    assert not np.array_equal(document_weights(20, 5, seed=3), document_weights(20, 5, seed=4))


def test_one_document_is_always_drawn_once() -> None:
    assert document_weights(1, 4, seed=0).tolist() == [[1]] * 4


@pytest.mark.parametrize(("n_documents", "n_resamples"), [(0, 5), (5, 0)])
def test_no_documents_or_no_resamples_is_a_mistake_of_the_caller(n_documents: int, n_resamples: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        document_weights(n_documents, n_resamples, seed=0)
