"""A process that draws samples from a hub of datasets, and the rows that lie there."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.hub import Hub, environment
from tests.support.hub_datasets import card, halves, sentence
from tests.support.places import PROJECT

ROWS = [{"text": sentence("row", n), "kind": ("even", "odd")[n % 2], "n": n} for n in range(45)]
Told = dict[str, Any]


class Asker:
    """A process that draws samples from one hub, with caches of its own."""

    def __init__(self, url: str, home: Path, **more: str) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hub_asker"],
            env=kept | environment(url, home) | more,
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, **asked: Any) -> Told:
        """Ask, and wait for the answer."""
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, self.stop()
        told: Told = json.loads(line)
        return told

    def draw(self, store: Path, limit: int = 1000, seed: int = 42, **dataset: Any) -> Told:
        """Ask for a sample as rbpx draws it."""
        return self.ask(dataset=dataset, store=str(store), limit=limit, seed=seed)

    def load(self, **asked: Any) -> list[str]:
        """As the paper's code."""
        load = {"subset": None, "fields": ["text"], "seed": 42, "streaming": False} | asked
        texts: list[str] = self.ask(load=load)["texts"]
        return texts

    def stop(self) -> str:
        """End the process; returns what it wrote on stderr."""
        return self._process.communicate(timeout=60)[1]


def add_rows(hub: Hub, of: str) -> str:
    """An id that no cache knows, made from the name of a test: two splits in two Parquet files each."""
    found = "org/" + hashlib.sha1(of.encode()).hexdigest()[:12]
    places = {"default": {"validation": "data/validation-*", "test": "data/test-*"}}
    hub.add(
        found, {"README.md": card(places)} | halves("data", "validation", ROWS[:20]) | halves("data", "test", ROWS[20:])
    )
    return found


def drawn_by_hand(texts: list[str], limit: int = 1000) -> list[str]:
    """The texts in the order of the draw."""
    return [texts[i] for i in np.random.default_rng(42).permutation(len(texts))[:limit]]


def texts_of(told: Told) -> list[str]:
    """The texts of an answer."""
    assert "documents" in told, told
    assert [doc_id for doc_id, _, _ in told["documents"]] == list(range(len(told["documents"])))
    return [text for _, _, text in told["documents"]]


def one_line(told: Told, error: str) -> str:
    """The line of an error of that kind."""
    assert told.get("error") == error, told
    line: str = told["says"]
    assert "\n" not in line
    assert len(line) < 500
    return line
