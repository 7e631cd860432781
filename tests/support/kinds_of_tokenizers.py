"""Tokenizers of every kind: the real families' own, and small ones as SentencePiece's are converted."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.real_tokenizers import load_real

_REAL = ("gpt2", "opt", "gpt_neox", "qwen2")
KINDS = (*_REAL, "bpe split", "bpe undivided", "unigram split", "unigram undivided")
_STRANGE = "ab1Z'.,-_\n\r\t \u3000\u00a0\u2003\u200b\u0301\u0345\u1161\u11a8\ufffd\u2581é한가東ſßİ"
_SPECIAL = ("<|endoftext|>", "</s>", "<unk>", "<pad>", "e\u0301", "\u1100\u1161")
PIECES = st.sampled_from([*_STRANGE, *_SPECIAL, " ", " ", "\n", "  ", "   ", " \n ", "\r\n", "'s", "word", "Ten 10"])


def kinds_of_tokenizers(shared: Path, folder: Path) -> dict[str, Any]:
    """A tokenizer of each kind, by way of files in an empty folder."""
    return {arch: load_real(arch, shared, folder / arch) for arch in _REAL} | _pieces()


def plain_first_tokens(tokenizer: Any, text: str, window: int) -> list[int]:
    """The first tokens of the whole text, with nothing cut before."""
    whole = tokenizer.backend_tokenizer
    whole.no_truncation()
    ids: list[int] = whole.encode(text).ids
    return ids[:window]


def _pieces() -> dict[str, Any]:
    """Small tokenizers as SentencePiece's are converted: undivided text (Llama 2), or split at spaces; BPE, Unigram."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    lines = ["The sea reads nothing and gives nothing back. 10 ships, 3 sails  two masts\n"] * 3 + [
        "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"
    ]
    made = {}
    spaced = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    for name, model, trainer in (
        ("bpe", models.BPE(unk_token="<unk>", fuse_unk=True), trainers.BpeTrainer),
        ("unigram", models.Unigram(), trainers.UnigramTrainer),
    ):
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        options = {"unk_token": "<unk>"} if name == "unigram" else {}
        alphabet = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"]
        tokenizer.train_from_iterator(
            lines, trainer(vocab_size=150, special_tokens=["<unk>"], initial_alphabet=alphabet, **options)
        )
        made[f"{name} split"] = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
        undivided = Tokenizer.from_str(tokenizer.to_str())
        undivided.normalizer = spaced
        undivided.pre_tokenizer = None  # type: ignore[assignment]
        undivided.add_special_tokens([AddedToken("</s>", lstrip=True)])
        made[f"{name} undivided"] = PreTrainedTokenizerFast(tokenizer_object=undivided, unk_token="<unk>")
    return made
