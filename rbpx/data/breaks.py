"""Finds where a text can be cut without changing the tokens before the cut, for tokenizers that guarantee it.

A tokenizer.json splits a text at its added tokens, normalises each part, splits that into pre-tokens by a rule, and
tokenises each pre-token by itself. A text is cut between a letter or digit and the following space (or line end), where
- no added token contains such a place, or reaches over it by absorbing white space (`rstrip`);
- no normaliser changes a character because of one beyond a space;
- one of the pre-token rules always ends a pre-token there, and none before it looks further than the next character
that is not white space; or there is no such rule, and no token of the vocabulary contains such a place.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

# Letters and digits of all Unicode versions: ASCII, Latin, Greek, Cyrillic, kana, Chinese, Hangul.
_WORD: Final = (
    "0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0391-\u03a1\u03b1-\u03c9\u0410-\u044f\u3042-\u3093\u30a2-\u30f3"
    "\u4e00-\u9fa5\uac00-\ud7a3"
)
_BEFORE_SPACE_OR_LINE: Final = re.compile(f"(?<=[{_WORD}])(?=[ \n])")
_BEFORE_SPACE: Final = re.compile(f"(?<=[{_WORD}])(?= )")
_PLAIN_BEFORE_SPACE: Final = re.compile(r"(?<=[0-9A-Za-z])(?= )")

# Patterns of `Split` whose matches end between a word and white space: in each alternative a letter or digit is
# followed by letters or digits alone, and only an alternative that begins in white space looks beyond it. By name:
# GPT-2 (also `ByteLevel` itself), GPT-4 (Qwen2, Llama 3 with other counts of digits), o200k (GPT-4o).
_GPT2: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_GPT4: Final = re.compile(
    re.escape(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}")
    + r"(\{1,3\}|\+)?"
    + re.escape(r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
)
_PLAIN: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def break_rule(tokenizer: Any) -> re.Pattern[str] | None:
    """A pattern with an empty match at each place where a text may be cut; None for nowhere."""
    backend = tokenizer.backend_tokenizer
    added = list(backend.get_added_tokens_decoder().values())
    if any(_reaches_over(token) for token in added) or backend.encode_special_tokens:
        return None
    normalizers, splitters = _parts(backend.normalizer, "normalizers"), _parts(backend.pre_tokenizer, "pretokenizers")
    if normalizers is None or splitters is None or not all(map(_is_local, normalizers)):
        return None
    if getattr(backend.model, "dropout", None):
        return None
    space = "\u2581" if any(_replaces_spaces(each) for each in normalizers) else " "
    if not splitters:
        return _PLAIN_BEFORE_SPACE if _joins_nothing(backend.model, tokenizer.get_vocab(), space) else None
    return _first_rule(splitters, space)


def _reaches_over(token: Any) -> bool:
    content = str(token.content)
    return bool(re.search(r"\w[\s\u2581]", content)) or (bool(token.rstrip) and content[-1:].isalnum())


def _parts(component: Any, inner: str) -> list[dict[str, Any]] | None:
    if component is None:
        return []
    try:
        state = json.loads(component.__getstate__())
    except (ValueError, TypeError, AttributeError):  # a part written in Python
        return None
    return _flat(state, inner)


def _flat(state: dict[str, Any], inner: str) -> list[dict[str, Any]]:
    return [part for each in state[inner] for part in _flat(each, inner)] if state["type"] == "Sequence" else [state]


def _is_local(normalizer: dict[str, Any]) -> bool:
    """Whether it changes no character because of one beyond a space, and keeps letters and spaces."""
    match normalizer:
        case {"type": "NFC" | "NFD" | "NFKC" | "NFKD" | "Lowercase" | "Prepend"}:
            return True
        case {"type": "Strip", "strip_right": False}:
            return True
        case {"type": "Replace"}:
            return _replaces_spaces(normalizer)
    return False


def _replaces_spaces(normalizer: dict[str, Any]) -> bool:
    return normalizer == {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}


def _first_rule(splitters: Iterable[dict[str, Any]], space: str) -> re.Pattern[str] | None:
    for part in splitters:
        match part:
            case {"type": "ByteLevel", "use_regex": True} if space == " ":
                return _BEFORE_SPACE_OR_LINE
            case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False} if (
                space == " " and (pattern == _GPT2 or _GPT4.fullmatch(pattern))
            ):
                return _BEFORE_SPACE_OR_LINE
            case {"type": "Whitespace" | "WhitespaceSplit" | "BertPreTokenizer"} if space == " ":
                return _BEFORE_SPACE_OR_LINE
            case {"type": "Metaspace", "split": True, "replacement": "\u2581"}:
                return _BEFORE_SPACE
            case {"type": "Digits" | "Punctuation"}:
                continue  # acts on single characters, none of them white space
        return None
    return None


def _joins_nothing(model: Any, vocabulary: Iterable[str], space: str) -> bool:
    """Whether an undivided model has no token with a break inside, and knows the characters before breaks.

    Merges and paths then treat both sides independently. A word that is looked up whole, or marked at its end, changes
    where a text is cut.
    """
    from tokenizers.models import BPE, Unigram

    marks = ("continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")
    if not isinstance(model, BPE | Unigram) or any(getattr(model, mark, None) for mark in marks):
        return False
    tokens = set(vocabulary)
    inside = re.compile(f"[0-9A-Za-z]{space}")
    return tokens.issuperset(_PLAIN) and not any(inside.search(token) for token in tokens)
