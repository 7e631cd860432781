"""Items of a task as documents, and models that read what they begin with once: rows are those of each read alone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rbpx.data.corpus import Document
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.items import Part
from rbpx.measure.extract import TokenColumns
from rbpx.models.load import LoadedModel
from tests.support.architectures import save_random, tiny_config
from tests.support.measuring import load, measure
from tests.support.reference import reference_rows

EXAMPLES = "The sea reads nothing. Letters carry salt.\n\n"
QUESTIONS = ("Who waits?", "What reads the sea?", "Who carries rope?", "Which ship leaves the harbour at dawn?", "Who?")
NEAR = 1e-5  # nats
# What a model attends to before its last tokens, and how its cache keeps it.
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "opt": ("opt", {}),
    "llama": ("llama", {}),
    "gpt_neox": ("gpt_neox", {}),
    "bloom": ("bloom", {}),
    "falcon with rotary positions": ("falcon", {}),
    "gemma": ("gemma", {}),
    "mistral with a short window": ("mistral", {"sliding_window": 9}),
    "gemma2 with a short window": ("gemma2", {"sliding_window": 9}),
    "gemma3 with two kinds of layers": ("gemma3_text", {"sliding_window": 9}),
    "mamba": ("mamba", {}),
    "mamba2": ("mamba2", {"chunk_size": 16}),
}
CONTINUE = {*SHAPES} - {"mamba"}  # transformers 5.23 drops what Mamba's convolution has seen
CHOICES = (" the one who waits", " the letters", " nothing", " rope", " the one who writes them", " a")


def documents(questions: Sequence[str], choices: Sequence[str] = CHOICES, before: str = "") -> list[Document]:
    """A document of each choice of each question; the second one is right."""
    pairs = [(item, n, before + q, choice) for item, q in enumerate(questions) for n, choice in enumerate(choices)]
    return [
        Document(at, str(item), context + choice, Part(item, n, n == 1, len(context), len(choice), len(choice)))
        for at, (item, n, context, choice) in enumerate(pairs)
    ]


def build_shape(name: str, folder: Path) -> LoadedModel:
    """A tiny model of that kind."""
    architecture, changes = SHAPES[name]
    save_random(tiny_config(architecture, **changes), folder)
    return load(folder)


@contextmanager
def counted(loaded: LoadedModel) -> Iterator[list[int]]:
    """The padded tokens of each pass."""
    n_read: list[int] = []
    hook = loaded.model.get_input_embeddings().register_forward_hook(
        lambda _, args, out: n_read.append(args[0].numel())
    )
    try:
        yield n_read
    finally:
        hook.remove()


def assert_as_alone(rows: TokenColumns, alone: TokenColumns) -> None:
    """The same ranks, and log-probabilities but for rounding."""
    for name in ("doc_id", "position", "token_id", "greater", "ties"):
        np.testing.assert_array_equal(rows[name], alone[name], err_msg=name)
    np.testing.assert_allclose(rows["logprob"], alone["logprob"], rtol=0, atol=NEAR)


def check_items_as_if_alone(loaded: LoadedModel, continues: bool) -> None:
    """Each choice has the rows that it has by itself; where a cache can be continued, far fewer tokens are read."""
    windows = cut_as_harness(documents(QUESTIONS, before=EXAMPLES), loaded.tokenizer, 512)
    with counted(loaded) as n_alone:
        alone = measure(loaded, windows, 1)
    for window in windows[::7]:
        own = alone["doc_id"] == window.doc_id
        expected = [row for row in reference_rows(loaded.model, window.ids.tolist(), []) if window.scored[row.position]]
        assert alone["greater"][own].tolist() == [row.greater for row in expected]
        np.testing.assert_allclose(alone["logprob"][own], [row.logprob for row in expected], rtol=0, atol=NEAR)
    for budget in (40, 300, 10**6):
        with counted(loaded) as n_read:
            assert_as_alone(measure(loaded, windows, budget), alone)
        if continues:
            assert sum(n_read) < sum(n_alone) / 2, budget
