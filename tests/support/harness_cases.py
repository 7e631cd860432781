"""What is asked of lm-evaluation-harness and of rbpx: models of five shapes, pairs, choices and texts.

The weights are made of integers by a formula, so that they are the same under any version of any library.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.support.real_tokenizers import real_config, write_tokenizer

CONTEXT = 48  # tokens that the models read at once
TOKENIZER_OF = {"gpt2": "gpt2", "opt": "opt", "gpt_neox": "gpt_neox", "qwen2": "qwen2", "llama": "gpt_neox"}


def _long(n_sentences: int) -> str:
    """No two stretches are the same: the harness takes equal windows of different texts for one, and mixes them up."""
    return "".join(
        f"In year {n} the keeper wrote down {n * n} ships that passed, and the hour. " for n in range(n_sentences)
    )


# (case, context, target): white space on each side of the border and on none, one token and many, contexts that are
# longer than the window, and none (of white space alone it refuses); special tokens, line ends, other scripts.
PAIRS: tuple[tuple[str, str, str], ...] = (
    ("space before", "The capital of France is", " Paris"),
    ("space after", "The capital of France is ", "Paris"),
    ("space on both sides", "The capital of France is ", " Paris"),
    ("two spaces", "The capital of France is  ", "Paris"),
    ("no space", "The capital of France is:", "Paris"),
    ("line end", "Question: What floats?\nAnswer:\n", "A boat, and now and then a stone."),
    ("tab and line end", "x = 1\n\t", "y = 2\n"),
    ("inside a word", "The letters were re", "turned unread"),
    ("one token", "One, two, three,", " four"),
    ("many tokens", "Tell me:", " " + _long(2).strip()),
    ("code", "def add(a, b):\n    ", "return a + b"),
    ("long context", _long(5), "Then he"),
    ("long context, space after", _long(4) + "Then ", "he slept at last."),
    ("fills the window", _long(3), " ".join(["and on"] * 18)),
    ("no context", "", "The sea reads nothing."),
    ("other scripts", "Grüße aus Zürich, 東京 und", " Αθήνα"),
    ("end of text inside", "One ends here.<|endoftext|>Another", " begins."),
    ("begins with end of text", "<|endoftext|>The letters are", " read twice"),
    ("begins with </s>", "</s>The letters are", " read twice"),
    ("trailing space in target", "A line of", " code "),
    ("greedy, one token", "salt salt salt", " salt"),
    ("greedy, many tokens", "rope rope rope ", "rope rope rope"),
    ("greedy but for the last", "salt salt salt", " salt salt rope"),
)

# Rows of choices, with the template and delimiter of most tasks; two answers are equally long, one is the longest.
CHOICES: tuple[dict[str, Any], ...] = (
    {"question": "Which of these floats on water?", "choices": ["a boat", "an anvil", "lead"], "label": 0},
    {"question": "What is 2 + 2?", "choices": ["3", "4", "twenty-two", "none of the others"], "label": 1},
    {"question": "What does the sea read? ", "choices": ["nothing", "letters that were thrown in"], "label": 0},
    {"question": "Which word is Greek?", "choices": ["Athen", "Αθήνα", "東京"], "label": 1},
    {"question": _long(3) + "Who wrote?", "choices": ["the keeper", "the ship", "the light"], "label": 0},
    {"question": "How long?", "choices": ["forty years", "an hour or a little more than that", "a day"], "label": 0},
    {"question": "Which one ends?", "choices": ["this one.", "that one."], "label": 1},
    {"question": "What is first?", "choices": ["a", "b", "c", "d"], "label": 3},
)
TEMPLATE = "Question: {question}\nAnswer:"

# Read to their end: shorter than the window, as long, a little longer, many windows, and beginning with white space.
TEXTS: tuple[str, ...] = (
    "The sea reads nothing.",
    " ".join(["salt"] * 47),
    " ".join(["rope"] * 49),
    _long(9),
    "\n  Grüße aus Zürich, 東京 und Αθήνα.\n\n" + _long(3),
    "x",
)


def build_shape(arch: str, tokenizers: Path, folder: Path) -> Path:
    """A checkpoint of one layer, 64 wide, that likes to repeat the last token, with the tokenizer of a real family."""
    from transformers import AutoModelForCausalLM

    config = real_config(arch, 64, CONTEXT, **dict.fromkeys(("bos_token_id", "eos_token_id")))
    model = AutoModelForCausalLM.from_config(config)
    fill(model)
    folder.mkdir(parents=True)
    model.save_pretrained(folder)
    write_tokenizer(TOKENIZER_OF[arch], tokenizers, folder)
    if arch == "llama":
        own = folder / "tokenizer_config.json"
        own.write_text(own.read_text().replace("GPTNeoXTokenizer", "PreTrainedTokenizerFast"))
    return folder


def fill(model: Any) -> None:
    """Give parameters the numbers that a hash of their places makes: embedding and head the same, norms around 1."""
    with torch.no_grad():
        for number, (name, parameter) in enumerate(sorted(model.named_parameters())):
            is_vocabulary = len(parameter) > 10_000
            place = np.arange(parameter.numel(), dtype=np.uint64) + np.uint64(
                1 + (0 if is_vocabulary else (1 + number) * 100_000_007)
            )
            place = (place ^ (place >> np.uint64(15))) * np.uint64(0x2C1B3C6D)
            place = (place ^ (place >> np.uint64(12))) * np.uint64(0x297A2D39)
            uniform = ((place ^ (place >> np.uint64(15))) % np.uint64(65536)).astype(np.float32) / 65536 - 0.5
            is_norm = ("norm" in name or "ln_" in name) and name.endswith("weight")
            scale, centre = (0.2, 1.0) if is_norm else (1.0 if is_vocabulary else 0.1, 0.0)
            parameter.copy_(torch.from_numpy(centre + scale * uniform).reshape(parameter.shape))
