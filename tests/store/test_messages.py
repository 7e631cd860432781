"""Messages beside results go through Python's logging: each once, much damage in few lines, none where nobody asks."""

import logging
from pathlib import Path

import pytest

from rbpx.cli.messages import messages_on_stderr
from rbpx.store.messages import collected_messages, warn_damage

LOG = logging.getLogger("rbpx.store.example")


def test_each_command_shows_each_message_once_on_one_visible_line(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with messages_on_stderr():
            LOG.warning("first\x1b[31m\nline, 100% of it")
            LOG.info("second")
            LOG.warning("first\x1b[31m\nline, 100% of it")
        assert capsys.readouterr() == ("", "rbpx: first\\x1b[31m\\nline, 100% of it\nrbpx: second\n")


def test_of_processes_that_measure_together_only_the_main_one_shows_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    with messages_on_stderr():
        LOG.warning("first")
    assert capsys.readouterr().err == ""


def test_five_lines_of_damage_a_store_and_then_who_names_the_rest() -> None:
    with collected_messages() as messages:
        for store in (Path("/a"), Path("/b")):
            for number in range(9):
                warn_damage(store, f"run {number}", "it is corrupt", "remove it")
                warn_damage(store, "run 0", "it is corrupt", "remove it")
    assert [line for line in messages if "=/a is" in line and line.startswith("run")] == [
        f"run {n} in store=/a is left out: it is corrupt; remove it" for n in range(5)
    ]
    assert [line for line in messages if line.startswith("more")] == [
        f"more of store={store} is left out; rbpx store verify --store {store} names all of it"
        for store in ("/a", "/b")
    ]
    assert len(messages) == 12


def test_nothing_is_printed_where_nobody_shows_messages(capsys: pytest.CaptureFixture[str]) -> None:
    with collected_messages() as messages:
        LOG.warning("inside")
    LOG.warning("outside")
    assert messages == ["inside"]
    assert capsys.readouterr() == ("", "")


def test_the_root_logger_shows_no_message_of_a_command_a_second_time(caplog: pytest.LogCaptureFixture) -> None:
    with messages_on_stderr():
        LOG.warning("once")
    assert caplog.records == []
