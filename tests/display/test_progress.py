"""One bar over several counts: each has its share, whatever it counts in, and fills it at its end."""

import pytest

from rbpx.display.progress import counted, share_of


def test_counts_within_a_share_advance_the_whole_by_their_part_of_it() -> None:
    done: list[float] = []
    with share_of(done.append, 30.0), counted("groups", 4) as advance:
        advance(1)
        advance(2)
        assert done == [pytest.approx(7.5), pytest.approx(15.0)]
    assert sum(done) == pytest.approx(30.0)


def test_shares_lie_within_shares() -> None:
    done: list[float] = []
    with share_of(done.append, 90.0), counted("questions", 3) as advance:
        with share_of(advance, 1), counted("groups", 2) as advance_groups:
            advance_groups(1)
            assert sum(done) == pytest.approx(15.0)
        assert sum(done) == pytest.approx(30.0)
        with share_of(advance, 2):  # nothing to count
            pass
        assert sum(done) == pytest.approx(90.0)
    assert sum(done) == pytest.approx(90.0)


def test_a_count_of_nothing_is_done_at_once() -> None:
    done: list[float] = []
    with share_of(done.append, 5.0), counted("groups", 0):
        pass
    assert sum(done) == 5.0
