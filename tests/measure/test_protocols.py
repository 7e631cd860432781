"""Protocols: the authors' tokens and masks, whole documents read in windows, rows of the vocabulary without a token."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from rbpx.config.text.dataset import ProtocolConfig
from rbpx.data.corpus import Document, draw, read_file, read_pydoc
from rbpx.data.windows import cut_windows, spans
from rbpx.errors import RbpxError
from tests.support.checkpoints import ARCHITECTURES, CONTEXT, TINY_TEXT, VOCAB_ROWS, build_tokenizer
from tests.support.commands import here
from tests.support.ladder import whole_copy
from tests.support.reference import Row, reference_rank
from tests.support.stores import Family, Measured

THEIRS = 512
Answered = list[dict[str, Any]]


def rows_of(store: Path) -> list[tuple[int, ...]]:
    """(doc_id, position, token_id, greater, ties) of the only run of a store."""
    (run,) = (store / "runs").iterdir()
    table = pq.read_table(run / "tokens.parquet")
    names = ("doc_id", "position", "token_id", "greater", "ties")
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def answered(query: str, store: Path, cwd: Path) -> Answered:
    return list(json.loads(here("sql", query, f"store={store}", "--format", "json", cwd=cwd, check=0).stdout))


def refused(cwd: Path, *words: object, status: int = 2) -> str:
    answer = here("measure", *words, cwd=cwd, check=status)
    lines = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(lines) == 1, answer.stderr
    return lines[0]


def opened(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(folder)


# ------------------------------------------------------------------------------------------------------ official


class Authors(NamedTuple):
    """What the authors' pipeline makes of texts.

    Attributes:
        rows: document, position, label, strict rank.
        behind: whether the document has the pad id before that label.
        hits: of each k, whether the label is among the k most probable.
    """

    rows: list[tuple[int, int, int, int]]
    behind: list[bool]
    hits: dict[int, list[bool]]


def as_the_authors_do(folder: Path, texts: list[str], masks_inside: bool = True) -> Authors:
    """Their pipeline by its description, one document after another.

    Pad to 512, inputs are all but the last token and labels all but the first; the pad id is masked wherever it stands,
    or behind the text alone if not `masks_inside`; a position counts where neither is the pad id nor special; ranks are
    those above plus one; RBP_k looks the label up among the k most probable.
    """
    model, tokenizer = opened(folder)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    pad = tokenizer.pad_token_id or tokenizer.eos_token_id
    found = Authors([], [], {k: [] for k in (1, 10, 100)})
    for document, text in enumerate(texts):
        encoded = tokenizer(text, truncation=True, max_length=THEIRS, padding="max_length", return_tensors="pt")
        mask = encoded["input_ids"].ne(pad).long() if masks_inside else encoded["attention_mask"]
        with torch.no_grad():
            logits = model(encoded["input_ids"], attention_mask=mask).logits[0]
        probabilities = torch.softmax(logits, -1)
        ids = encoded["input_ids"][0].tolist()
        assert len(ids) == THEIRS
        for position, (read, label) in enumerate(pairwise(ids), 1):
            if pad in (read, label) or {read, label} & set(tokenizer.all_special_ids):
                continue
            above = int((logits[position - 1] > logits[position - 1, label]).sum())
            found.rows.append((document, position, label, above + 1))
            found.behind.append(pad in ids[:position])
            for k, hits in found.hits.items():
                hits.append(label in torch.topk(probabilities[position - 1], k).indices.tolist())
    return found


def check_against_the_authors(folder: Path, words: list[object], texts: list[str], store: Path, cwd: Path) -> Authors:
    """Measure by `protocol=official`: the authors' ranks but for what is behind a pad id inside a text."""
    theirs, otherwise = (as_the_authors_do(folder, texts, masks_inside=inside) for inside in (True, False))
    asked = ("measure", "model=hub", f"model.id={folder}", "protocol=official", *words, f"store={store}")
    said = here(*asked, cwd=cwd, check=0).stderr
    measured_rows = rows_of(store)
    assert [(d, p, token) for d, p, token, _, _ in measured_rows] == [row[:3] for row in theirs.rows]
    # The authors' batch is padded: a logit may round otherwise, by the contract for 1 token in 1,000.
    moved = sum(g + 1 != row[3] for (_, _, _, g, _), row in zip(measured_rows, otherwise.rows, strict=True))
    assert moved <= len(measured_rows) / 1000
    before = [at for at, behind in enumerate(theirs.behind) if not behind]
    moved = sum(measured_rows[at][3] + 1 != theirs.rows[at][3] for at in before)
    assert moved <= len(before) / 1000
    for k, hits in theirs.hits.items():
        share = np.mean([hits[at] for at in before])
        of_run = [measured_rows[at][3:] for at in before]
        strict, with_ties = (np.mean([g + t * sign < k for g, t in of_run]) for sign in (0, 1))
        assert with_ties - moved / len(before) <= share <= strict + moved / len(before)
    documents = {row[0] for row, behind in zip(theirs.rows, theirs.behind, strict=True) if behind}
    counted = f"{len(documents)} of {len(texts)} documents contain"
    assert (counted in said) == (f"ranks of the {sum(theirs.behind):,} tokens after it may differ" in said)
    assert (counted in said) == bool(documents)
    return theirs


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_official_scores_the_tokens_of_the_authors_code_with_its_ranks(
    arch: str, tiny_checkpoint: Callable[..., Path], cwd: Path, tmp_path: Path
) -> None:
    """Behind a pad id inside a text the authors' ranks are others, and how many these are is said."""
    folder, path = tiny_checkpoint(arch, context=THEIRS, twins=8), tmp_path / "texts.jsonl"
    inside = f"{TINY_TEXT[3]}<pad>{TINY_TEXT[0]}<|endoftext|>{TINY_TEXT[7]}"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in (*TINY_TEXT, inside)), encoding="utf-8")
    texts = [document.text for document in draw(read_file(path, ["text"]), 1000, 42)]
    words: list[object] = ["dataset=file", f"dataset.path={path}"]
    theirs = check_against_the_authors(folder, words, texts, tmp_path / "s", cwd)
    differ = [row[3] != ours[3] + 1 for row, ours in zip(theirs.rows, rows_of(tmp_path / "s"), strict=True)]
    assert sum(differ) > sum(theirs.behind) / 10 > 0
    (shown,) = (tmp_path / "s" / "runs").glob("*/manifest.json")
    inner = json.loads(shown.read_text())["inner_padding"]
    assert inner["text"] == ("<pad>" if arch.startswith("opt") else "<|endoftext|>")
    assert inner["tokens"] == sum(theirs.behind)


def test_official_draws_and_cuts_real_texts_as_the_authors_code_does(cwd: Path, tmp_path: Path) -> None:
    order = np.random.default_rng(42).permutation(len(read_pydoc()))[:12]  # what `Dataset.shuffle(seed=42)` does
    texts = [read_pydoc()[i][1] for i in order]
    check_against_the_authors(
        whole_copy("3k", tmp_path / "3k"), ["dataset=pydoc", "limit=12"], texts, tmp_path / "s", cwd
    )


def test_official_and_paper_are_runs_of_their_own_that_agree_token_for_token(cwd: Path, tmp_path: Path) -> None:
    words = ("model=ladder", "size=3k", "dataset=pydoc", "limit=9")
    stores = {name: tmp_path / name for name in ("paper", "official")}
    for name, store in stores.items():
        here("measure", *words, f"protocol={name}", f"store={store}", cwd=cwd, check=0)
    assert rows_of(stores["paper"]) == rows_of(stores["official"])
    ids = {answered("SELECT run_id FROM runs", store, cwd)[0]["run_id"] for store in stores.values()}
    assert len(ids) == 2


class _Tokenizer:
    """A tokenizer's two settings that decide with what the authors fill a window."""

    def __init__(self, pad_token_id: int | None, eos_token_id: int | None) -> None:
        self.pad_token_id, self.eos_token_id = pad_token_id, eos_token_id


@pytest.mark.parametrize(("pad", "eos", "fills"), [(5, 7, 5), (None, 7, 7), (0, 7, 7), (None, 0, 0)])
def test_the_authors_fill_with_pad_or_else_eos_and_take_0_for_unset(pad: int | None, eos: int, fills: int) -> None:
    from rbpx.data.windows import authors_padding

    assert authors_padding(_Tokenizer(pad, eos)) == fills


def test_a_tokenizer_with_nothing_to_fill_a_window_with_is_refused() -> None:
    from rbpx.data.windows import authors_padding

    with pytest.raises(RbpxError, match="neither"):
        authors_padding(_Tokenizer(None, None))


def test_an_id_that_fills_windows_is_no_input_and_no_label_even_if_it_is_not_special() -> None:
    tokenizer = build_tokenizer("gpt2")
    letter = tokenizer.convert_tokens_to_ids("b")
    (window,) = cut_windows([Document(0, "0", "abcd")], tokenizer, 9, unscored=[letter])
    assert tokenizer.convert_ids_to_tokens(window.ids.tolist()) == ["a", "b", "c", "d"]
    assert window.scored.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("seed=1", "seed=1 is not what the authors used, which is 42"),
        ("limit=1001", "which is 1000"),
        ("model.bos=add", "which is tokenizer"),
        ("protocol.window=256", "which is 512"),
    ],
)
def test_official_is_the_authors_sample_and_nothing_else(word: str, says: str, cwd: Path) -> None:
    assert says in refused(cwd, "model=ladder", "size=3k", "dataset=pydoc", "protocol=official", word)


def test_a_model_that_cannot_read_512_tokens_has_no_official_measurement(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    words = ("model=hub", f"model.id={tiny_checkpoint('gpt2')}", "dataset=file", f"dataset.path={tiny_jsonl}")
    line = refused(cwd, *words, "protocol=official", f"store={tmp_path / 's'}")
    assert f"at most {CONTEXT}" in line
    assert "protocol=paper" in line


def test_laws_of_official_runs_count_ties_optimistically_unless_asked_otherwise(
    tmp_path: Path, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path
) -> None:
    ids = [str(tiny_checkpoint("gpt2", context=THEIRS, twins=8, hidden_size=d)) for d in (8, 16, 24)]
    words = [
        "model=hub",
        f"model.id=[{','.join(ids)}]",
        "model.family=mine",
        "dataset=file",
        f"dataset.path={tiny_jsonl}",
    ]
    store = f"store={tmp_path / 's'}"
    here("measure", "-m", *words, "protocol=paper,official", store, cwd=cwd, check=0)

    def rules(*more: str) -> dict[str, set[str]]:
        words = ("fit", "laws=[rbp]", "k=[1]", "resamples=20", store, "--format", "json", *more)
        rows = json.loads(here(*words, cwd=cwd, check=0).stdout)
        return {name: {row["ties"] for row in rows if row["protocol"] == name} for name in ("paper", "official")}

    assert rules() == {"paper": {"pessimistic"}, "official": {"optimistic"}}
    assert rules("ties=mid") == {"paper": {"mid"}, "official": {"mid"}}


# ------------------------------------------------------------------------------------------------------- rolling


def test_windows_of_worked_examples() -> None:
    assert spans(10, 4, 2) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert spans(9, 4, 2) == [(0, 4), (2, 6), (4, 8), (6, 9)]
    assert spans(4, 4, 2) == [(0, 4)]
    assert spans(5, 4, 3) == [(0, 4), (3, 5)]
    assert spans(3, 4, 2) == [(0, 3)]
    assert spans(0, 4, 2) == [(0, 0)]
    assert spans(10, 4, None) == [(0, 4)]


@pytest.mark.parametrize("arch", ["gpt2", "opt"])
@pytest.mark.parametrize(("window", "stride"), [(8, 4), (8, 7), (9, 1), (64, 32), (10_000, 5_000)])
def test_every_token_of_every_document_is_scored_once(arch: str, window: int, stride: int) -> None:
    tokenizer = build_tokenizer(arch)
    documents = [Document(n, str(n), text) for n, text in enumerate(TINY_TEXT)]
    rolled = cut_windows(documents, tokenizer, window, stride=stride)
    for document, whole in zip(documents, cut_windows(documents, tokenizer, 10_000), strict=True):
        mine = [w for w in rolled if w.doc_id == document.doc_id]
        positions = [w.start + t for w in mine for t in np.flatnonzero(w.scored)]
        assert positions == np.flatnonzero(whole.scored).tolist()
        for w in mine:
            assert len(w.ids) <= window
            assert w.ids.tolist() == whole.ids[w.start : w.start + len(w.ids)].tolist()
            if w.start:
                assert np.flatnonzero(w.scored).min(initial=window) >= window - stride, "context is kept"
        assert sum(w.n_bytes for w in mine) == whole.n_bytes == len(document.text.encode())
        assert sum(w.n_bytes_scored for w in mine) == whole.n_bytes_scored


def rolled_by_hand(folder: Path, texts: list[str], window: int, stride: int) -> list[tuple[int, Row]]:
    """A token at a time: the first window that reaches it is its own, and predicts it from its beginning on."""
    model, tokenizer = opened(folder)
    special = set(tokenizer.all_special_ids)
    rows = []
    for document, text in enumerate(texts):
        ids = tokenizer(text)["input_ids"]
        for position in range(1, len(ids)):
            if {ids[position - 1], ids[position]} & special:
                continue
            begin = 0
            while begin + window <= position:
                begin += stride
            with torch.no_grad():
                logits = model(torch.tensor([ids[begin:position]])).logits[0, -1]
            rows.append((document, Row(position, ids[position], *reference_rank(logits.tolist(), ids[position]))))
    return rows


@pytest.mark.parametrize(("arch", "stride"), [("gpt2", None), ("opt", 50), ("gpt_neox", 7)])
def test_rolling_ranks_are_those_of_each_token_read_from_its_window_alone(
    arch: str, stride: int | None, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    folder, store = tiny_checkpoint(arch), tmp_path / "s"
    texts = [document.text for document in draw(read_file(tiny_jsonl, ["text"]), 1000, 42)]
    expected = rolled_by_hand(folder, texts, CONTEXT, stride or CONTEXT // 2)
    words = ["model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={tiny_jsonl}", "protocol=rolling"]
    words += [] if stride is None else [f"protocol.stride={stride}"]
    for budget in (1, 4096):
        here("measure", *words, f"tokens_per_batch={budget}", f"store={store}{budget}", cwd=cwd, check=0)
        measured_rows = rows_of(Path(f"{store}{budget}"))
        assert measured_rows == [(d, r.position, r.token_id, r.greater, r.ties) for d, r in expected]
    (run,) = answered('SELECT "window", stride, n_tokens, n_bytes FROM runs', Path(f"{store}1"), cwd)
    assert (run["window"], run["stride"]) == (CONTEXT, stride or CONTEXT // 2)
    assert run["n_tokens"] == len(expected)
    documents = answered("SELECT * FROM documents ORDER BY doc_id", Path(f"{store}1"), cwd)
    assert [row["n_bytes"] for row in documents] == [len(text.encode()) for text in texts]
    assert [row["n_scored"] for row in documents] == [sum(d == n for d, _ in expected) for n in range(len(texts))]


def test_documents_that_fit_into_a_window_are_measured_as_under_the_paper_protocol(
    family: Family, measured: Measured, own_store: Path, cwd: Path
) -> None:
    here("measure", *family.words("xs"), "protocol=rolling", f"store={own_store}", cwd=cwd, check=0)
    apart = answered(
        "SELECT count(*) AS n, count(*) FILTER (WHERE a.greater <> b.greater OR a.ties <> b.ties) AS moved "
        "FROM tokens a JOIN tokens b USING (doc_id, position) "
        "JOIN runs ra ON ra.run_id = a.run_id JOIN runs rb ON rb.run_id = b.run_id "
        "WHERE ra.protocol = 'paper' AND rb.protocol = 'rolling' AND ra.size = 'xs'",
        own_store,
        cwd,
    )
    (paper,) = answered("SELECT n_tokens FROM runs WHERE protocol = 'paper' AND size = 'xs'", own_store, cwd)
    assert apart == [{"n": paper["n_tokens"], "moved": 0}], "the first window of each document is read alike"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("protocol=rolling", "protocol.stride=1024"), "protocol.stride=1024 is not below protocol.window=1024"),
        (("protocol=rolling", "protocol.stride=0"), "protocol.stride=0"),
        (("protocol=paper", "protocol.stride=5"), "is for whole documents; use protocol=rolling"),
        (("protocol.window=1",), "protocol.window=1 predicts nothing"),
        (("protocol=rolling", "protocol.stride=600"), "600 must be less than the window, which is 512 tokens"),
        (("protocol.padding=some",), "padding"),
    ],
)
def test_windows_that_would_leave_a_token_out_are_refused(
    words: tuple[str, ...], says: str, cwd: Path, tmp_path: Path
) -> None:
    assert says in refused(cwd, "model=ladder", "size=3k", "dataset=pydoc", *words, f"store={tmp_path / 's'}")


def test_a_stride_of_none_is_half_a_window() -> None:
    assert ProtocolConfig(whole=True).stride is None
    with pytest.raises(ValueError, match="nothing of a window"):
        spans(10, 4, 4)


# ------------------------------------------------------------------------------------------------------- padding


@pytest.mark.parametrize("arch", ["gpt2", "qwen2"])
def test_masked_rows_take_part_in_no_rank_and_no_probability(
    arch: str, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    folder, store = tiny_checkpoint(arch, twins=8), tmp_path / "s"
    model, tokenizer = opened(folder)
    n_ids = max(tokenizer.get_vocab().values()) + 1
    assert n_ids < VOCAB_ROWS
    words = ("model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={tiny_jsonl}", f"store={store}")
    here("measure", *words, "protocol.padding=masked", cwd=cwd, check=0)
    special = set(tokenizer.all_special_ids)
    expected: list[tuple[Any, ...]] = []
    for d, document in enumerate(draw(read_file(tiny_jsonl, ["text"]), 1000, 42)):
        ids = tokenizer(document.text)["input_ids"][:CONTEXT]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, :, :n_ids].tolist()
        for position in range(1, len(ids)):
            if not {ids[position - 1], ids[position]} & special:
                greater, ties, logprob = reference_rank(logits[position - 1], ids[position])
                expected.append((d, position, ids[position], greater, ties, logprob))
    (run,) = (store / "runs").iterdir()
    table = pq.read_table(run / "tokens.parquet")
    assert rows_of(store) == [row[:5] for row in expected]
    np.testing.assert_allclose(table["logprob"], [row[5] for row in expected], rtol=0, atol=1e-5)
    assert answered("SELECT vocab_size, padding FROM runs", store, cwd) == [{"vocab_size": n_ids, "padding": "masked"}]


def test_masking_is_no_choice_where_every_row_has_a_token(cwd: Path, tmp_path: Path) -> None:
    """The ladder has 4,096 rows for 4,096 tokens."""
    words = ("-m", "model=ladder", "size=3k", "dataset=pydoc", "limit=3", f"store={tmp_path / 's'}")
    here("measure", *words, "protocol.padding=counted,masked", cwd=cwd, check=0)
    runs = answered("SELECT run_id, padding FROM runs", tmp_path / "s", cwd)
    assert len(runs) == 2
    assert len({row["run_id"] for row in runs}) == 1
    assert {row["padding"] for row in runs} == {"counted"}


def test_runs_with_and_without_the_padded_rows_never_enter_one_fit(family: Family, own_store: Path, cwd: Path) -> None:
    here("measure", *family.words(), "protocol.padding=masked", f"store={own_store}", cwd=cwd, check=0)
    words = ("fit", "laws=[cross_entropy]", f"store={own_store}", "resamples=20")
    rows = json.loads(here(*words, "--format", "json", cwd=cwd, check=0).stdout)
    assert {row["padding"]: row["n_points"] for row in rows} == {"counted": 4, "masked": 4}
    titles = [line.strip() for line in here(*words, cwd=cwd, check=0).stdout.splitlines()]
    assert {"mine on file, window 64", "mine on file, window 64, padding masked"} <= set(titles)
