"""Protocols: the authors' tokens and masks, whole documents read in windows, rows of the vocabulary without a token."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from rbpx.config.options import Bos
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.data.corpus import Document, draw, read_file
from rbpx.data.windows import authors_padding, cut_windows, prefix_id
from rbpx.errors import RbpxError
from rbpx.measure.extract import COLUMNS
from tests.support.authors import THEIRS, check_padding_inside, opened, rows_of
from tests.support.checkpoints import CONTEXT, TINY_TEXT, VOCAB_ROWS, build_tokenizer
from tests.support.commands import here
from tests.support.filled import filled
from tests.support.measuring import load, measure
from tests.support.real_tokenizers import HELLO_WORLD, ROWS, load_real
from tests.support.reference import Row, reference_rank
from tests.support.stores import Family, cell_records, columns_of, manifests


def refused(cwd: Path, *words: object, status: int = 2) -> str:
    answer = here("measure", *words, cwd=cwd, check=status)
    lines = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(lines) == 1, answer.stderr
    return lines[0]


# ------------------------------------------------------------------------------------------------------ official


@pytest.mark.parametrize("arch", ["gpt2", "opt", "qwen2"])
def test_official_scores_the_tokens_of_the_authors_code_with_its_ranks(
    arch: str, tiny_checkpoint: Callable[..., Path], cwd: Path, tmp_path: Path
) -> None:
    folder = tiny_checkpoint(arch, context=THEIRS, twins=8)
    check_padding_inside(folder, [TINY_TEXT[1], TINY_TEXT[5], TINY_TEXT[7]], tmp_path, cwd)


@pytest.mark.parametrize(("pad", "eos", "fills"), [(5, 7, 5), (None, 7, 7), (0, 7, 7), (None, 0, 0)])
def test_the_authors_fill_with_pad_or_else_eos_and_take_0_for_unset(pad: int | None, eos: int, fills: int) -> None:
    assert authors_padding(SimpleNamespace(pad_token_id=pad, eos_token_id=eos)) == fills
    with pytest.raises(RbpxError, match="neither"):
        authors_padding(SimpleNamespace(pad_token_id=None, eos_token_id=None))


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
        ("protocol.window=256", "which is 512"),
        ("limit=1001", "which is 1000"),
        ("model.bos=add", "which is tokenizer"),
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


# ------------------------------------------------------------------------------------------------------- rolling


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


@pytest.mark.parametrize(("arch", "stride"), [("gpt2", 32), ("opt", 50), ("gpt_neox", 7)])
def test_rolling_ranks_are_those_of_each_token_read_from_its_window_alone(
    arch: str, stride: int, tiny_checkpoint: Callable[..., Path]
) -> None:
    texts = [TINY_TEXT[5], TINY_TEXT[6][:300], TINY_TEXT[4] * 5, ""]
    loaded = load(tiny_checkpoint(arch))
    expected = rolled_by_hand(tiny_checkpoint(arch), texts, CONTEXT, stride)
    documents = [Document(n, str(n), text) for n, text in enumerate(texts)]
    windows = cut_windows(documents, loaded.tokenizer, CONTEXT, stride=stride)
    assert len(windows) > 3
    for whole in cut_windows(documents, loaded.tokenizer, 10_000):
        mine = [window for window in windows if window.doc_id == whole.doc_id]
        assert sum(window.n_bytes for window in mine) == len(texts[whole.doc_id].encode())
        assert sum(window.n_bytes_scored for window in mine) == whole.n_bytes_scored
    for budget in (1, 4096):
        rows = measure(loaded, windows, budget)
        found = zip(*(rows[name].tolist() for name in COLUMNS[:-1]), strict=True)
        assert list(found) == [(d, r.position, r.token_id, r.greater, r.ties) for d, r in expected]
        np.testing.assert_allclose(rows["logprob"], [r.logprob for _, r in expected], rtol=0, atol=1e-4)


def test_a_rolling_run_reads_all_of_each_document_and_its_first_window_as_the_paper_protocol(
    family: Family, tiny_text: list[str], cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    here("measure", "-m", *family.words("xs"), "protocol=paper,rolling", "--store", store, cwd=cwd, check=0)
    facts = {each["protocol"]: each for each in manifests(store).values()}
    assert (facts["rolling"]["window"], facts["rolling"]["stride"]) == (CONTEXT, CONTEXT // 2)
    read = columns_of(store / "runs" / facts["rolling"]["run_id"], "documents")
    assert sorted(read["n_bytes"].tolist()) == sorted(len(text.encode()) for text in tiny_text)
    paper, rolling = (columns_of(store / "runs" / facts[name]["run_id"], "tokens") for name in ("paper", "rolling"))
    first = rolling["position"] < CONTEXT
    assert 0 < first.sum() == len(paper["position"]) < len(first)
    for name in ("doc_id", "position", "token_id", "greater", "ties"):
        np.testing.assert_array_equal(rolling[name][first], paper[name], err_msg=name)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            {"name": "rolling", "whole": True, "window": 1024, "stride": 1024},
            "protocol.window=1024 and protocol.stride=1024 leave out tokens",
        ),
        ({"name": "rolling", "whole": True, "stride": 0}, "protocol.stride=0"),
        ({"stride": 5}, "is for whole documents; use protocol=rolling"),
        ({"prefix": "bos"}, "begins each window of whole documents; use protocol=rolling"),
        ({"window": 1}, "protocol.window=1 and"),
    ],
    ids=str,
)
def test_windows_that_would_leave_a_token_out_are_refused(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(RbpxError) as caught:
        ProtocolConfig(**keys)
    assert says in str(caught.value)


def test_a_stride_of_more_than_a_models_window_is_refused(cwd: Path, tmp_path: Path) -> None:
    words = ("protocol=rolling", "protocol.stride=600", f"store={tmp_path / 's'}")
    line = refused(cwd, "model=ladder", "size=3k", "dataset=pydoc", *words)
    assert "600 must be less than the window, which is 512 tokens" in line


@pytest.fixture(scope="module", params=[*ROWS])
def real(request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    tokenizers = shared_data / "data" / "tokenizers"
    tokenizer = load_real(request.param, tokenizers, tmp_path_factory.mktemp("real") / request.param)
    assert tokenizer("Hello world")["input_ids"] == HELLO_WORLD[request.param]
    return tokenizer


@pytest.mark.parametrize("stride", [1, 8, 14])
def test_each_window_begins_with_the_prefix_and_each_token_is_scored_in_its_first_window(
    real: Any, stride: int
) -> None:
    texts, window, prefix = [*TINY_TEXT, "", "one\n\ntwo " * 9, f"A{real.eos_token}B and C"], 16, 198
    expected = list[tuple[int, int, int, list[int]]]()  # document, position, token, all that is read before it
    for doc_id, text in enumerate(texts):
        ids, special = real(text, add_special_tokens=False)["input_ids"], {*real.all_special_ids}
        for at in range(1, len(ids)):  # the first token of a text has no context but the prefix
            if not {ids[at - 1], ids[at]} & special:
                # Its position, which counts the prefix, is at + 1; the first window to hold that has this one's number.
                number = next(n for n in range(len(ids)) if at + 1 < n * stride + window)
                expected.append((doc_id, at + 1, ids[at], [prefix, *ids[number * stride : at]]))
    documents = [Document(n, str(n), text) for n, text in enumerate(texts)]
    windows = cut_windows(documents, real, window, Bos.none, stride, prefix=prefix)
    assert max(len(each.ids) for each in windows) == window
    found = [
        (each.doc_id, each.start + int(t), int(each.ids[t]), each.ids[:t].tolist())
        for each in windows
        for t in np.flatnonzero(each.scored)
    ]
    assert found == expected
    covered = [(each.doc_id, *place) for each in windows for place in zip(*each.scored_bytes, strict=True)]
    for (doc_id, begin, n), (_, _, token, _) in zip(covered, expected, strict=True):
        if texts[doc_id].isascii():
            assert texts[doc_id].encode()[begin : begin + n].decode() == real.decode([token])


def test_a_prefix_is_one_token_by_its_role_its_text_or_its_id(real: Any) -> None:
    vocab, n_rows = real.get_vocab(), len(real)
    named = {"eos": real.eos_token, real.eos_token: real.eos_token, "\\n": chr(266), "7": real.convert_ids_to_tokens(7)}
    assert {each: prefix_id(real, each, n_rows) for each in named} == {a: vocab[b] for a, b in named.items()}
    refusals = {"two words": "cuts it into 2", "": "cuts it into 0", str(n_rows): f"has ids from 0 to {n_rows - 1}"}
    if real.bos_token is None:
        refusals["bos"] = "has no BOS"
    for prefix, why in refusals.items():
        with pytest.raises(RbpxError) as caught:
            prefix_id(real, prefix, n_rows)
        assert f"protocol.prefix={prefix} is not one token: the tokenizer {why};" in str(caught.value)


def test_a_prefix_makes_a_run_of_its_own_and_names_of_one_token_the_same(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    words = ("model=hub", f"model.id={tiny_checkpoint('gpt2')}", "dataset=file", f"dataset.path={tiny_jsonl}")
    words = (*words, "protocol=rolling", "protocol.window=20", "--store", str(tmp_path / "s"))
    here("measure", "-m", *words, "protocol.prefix=null,bos,eos,40", cwd=cwd, check=0)
    runs = {cell["config"]["protocol"]["prefix"]: cell["run_id"] for cell in cell_records(tmp_path / "s")}
    assert runs["bos"] == runs["eos"]
    assert len({*runs.values()}) == 3
    facts = manifests(tmp_path / "s")
    assert len({facts[run]["n_tokens"] for run in runs.values()}) == 1
    end = build_tokenizer("gpt2").eos_token_id
    assert [facts[runs[each]]["bos"] for each in (None, "bos")] == [
        "tokenizer", f"<|endoftext|> (id {end}) before each window"
    ]  # fmt: skip
    for word, says in (("protocol.stride=19", "which is 19 tokens behind its prefix"), ("model.bos=none", "drop one")):
        assert says in refused(cwd, *words, "protocol.prefix=bos", word)


def test_items_take_no_prefix() -> None:
    with pytest.raises(RbpxError, match="use protocol=harness without a stride or a prefix"):
        ProtocolConfig(name="rolling", whole=True, prefix="bos").of_items()


# ------------------------------------------------------------------------------------------------------- padding


@pytest.mark.parametrize("arch", ["qwen2"])
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
    for d, document in enumerate(draw(read_file(tiny_jsonl), 1000, 42)):
        ids = tokenizer(document.text)["input_ids"][:CONTEXT]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, :, :n_ids].tolist()
        for position in range(1, len(ids)):
            if not {ids[position - 1], ids[position]} & special:
                greater, ties, logprob = reference_rank(logits[position - 1], ids[position])
                expected.append((d, position, ids[position], greater, ties, logprob))
    (run,) = (store / "runs").glob("[!_]*")
    table = pq.read_table(run / "tokens.parquet")
    assert rows_of(store) == [row[:5] for row in expected]
    np.testing.assert_allclose(table["logprob"], [row[5] for row in expected], rtol=0, atol=1e-5)
    (facts,) = manifests(store).values()
    assert (facts["vocab_size"], facts["padding"]) == (n_ids, "masked")


def test_masking_is_no_choice_where_every_row_has_a_token(tiny_jsonl: Path, cwd: Path, tmp_path: Path) -> None:
    """The ladder has 4,096 rows for 4,096 tokens."""
    words = ("-m", "model=ladder", "size=3k", "dataset=file", f"dataset.path={tiny_jsonl}", f"store={tmp_path / 's'}")
    here("measure", *words, "protocol.padding=counted,masked", cwd=cwd, check=0)
    (facts,) = manifests(tmp_path / "s").values()
    assert facts["padding"] == "counted"
    assert len(cell_records(tmp_path / "s")) == 2


def test_runs_of_another_padding_or_bos_never_enter_one_fit(cwd: Path, tmp_path: Path) -> None:
    for seed, facts in enumerate(({}, {"padding": "masked"}, {"bos": "add"})):
        filled(tmp_path / "s", seed, **facts)
    words = ("fit", "laws=[cross_entropy]", "resamples=20", f"store={tmp_path / 's'}")
    rows = json.loads(here(*words, "--format", "json", "--details", cwd=cwd, check=0).stdout)
    n_points = {(row["padding"], row["bos"]): row["n_points"] for row in rows}
    assert n_points == {("counted", "tokenizer"): 4, ("masked", "tokenizer"): 4, ("counted", "add"): 4}
    assert len({run_id for row in rows for run_id in row["run_ids"]}) == 12
    titles = {line.strip() for line in here(*words, cwd=cwd, check=0).stdout.splitlines()}
    assert {"mine on file", "mine on file, bos add", "mine on file, padding masked"} <= titles


def test_half_a_character_is_refused_in_one_line_that_names_its_row(
    tiny_checkpoint: Callable[..., Path], cwd: Path, tmp_path: Path
) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "The sea."}\n{"text": "lone \\ud83d"}\n')
    folder, store = tiny_checkpoint("gpt2"), tmp_path / "store"
    words = ["model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={texts}", "--store", store]
    line = refused(cwd, *words)
    assert r"row 2 of its text has '\ud83d' at character 5, half of a surrogate pair" in line
