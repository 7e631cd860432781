"""One bar over several counts: each has its share, whatever it counts in, and fills it at its end."""

from types import SimpleNamespace

import pytest

from rbpx.display.progress import counted, downloading, share_of


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


def test_a_download_tells_its_pace_and_the_time_left_every_quarter_of_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("rbpx.display.progress.time", clock)
    with downloading("3 files", 1_000_000_000) as advance:
        for seconds, n in (
            (10, 100_000_000),
            (20, 150_000_000),
            (30, 50_000_000),
            (40, 100_000_000),
            (60, 600_000_000),
        ):
            clock.now = 100.0 + seconds
            advance(n)
    told = ["3 files: 25% of 1.00 GB, 12.5 MB/s, 1m left", "3 files: 40% of 1.00 GB, 10.0 MB/s, 1m left"]
    assert capsys.readouterr().err.splitlines() == told
