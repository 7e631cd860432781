"""What `--help` teaches: a verb in, a page of text out; nothing heavy is imported for it."""

import textwrap
from pathlib import Path

from rbpx.cli.registry import about, verbs
from rbpx.config.places import experiments, folder

_KEYS = """\
model=FAMILY      {models}
                  model=hub model.id=ORG/NAME or a folder; model.revision=step1000 a branch, tag or commit of the hub
model.pickled=true  take weights from pytorch_model.bin where there are no safetensors; tensors only, no code is run
model.bos=RULE    tokenizer (default): special tokens as the tokenizer adds them; add: exactly one BOS; none
size=SIZE         all (default), one, or a list: size='[3k,25k]'
dataset=NAME      {datasets}
                  dataset=file dataset.path=FILE for your own text; dataset.path= beside a known dataset reads that
                  from a file; dataset=hub dataset.hub=ORG/NAME dataset.split=test, dataset.subset=, dataset.revision=
dataset.fields=   columns that make a document, '[question,answer]'; dataset.where='{{column: value}}' and
                  dataset.longer_than=N choose rows, dataset.articles=true joins lines into articles
dataset.draw=HOW  whole: load, shuffle, take the first; parts, stream: the same documents, with less loaded;
                  first: the first rows, shuffled. What was drawn stays in the store, in samples/
protocol=NAME     paper (default): documents cut to 512 tokens or the model's context; official: what the authors'
                  code does; rolling: whole documents, protocol.window=1024 protocol.stride=512, each token scored once
protocol.padding=counted  or masked: rows of the vocabulary without a token (Pythia has 27 or more)
k=K               one, a list k='[1,10,100]', or log; default 1, 10, 100, 500, 1000, 2500, 10000 below the vocabulary
n=N, S=S          lengths of windows and sequences, in tokens; sizes to predict
ties=RULE         pessimistic (default), optimistic (default for protocol=official), mid
limit=N           documents at most, default 1000, drawn with seed=42
dtype=float32     or bfloat16, float16; logits are float32 in each
device=auto       or cpu, cuda; tokens_per_batch=4096 changes speed, never results
device=split      a model larger than one GPU, over all GPUs, memory and disk; memory='{{0: 20GiB, cpu: 60GiB}}' limits
                  each of them, and what it does not name holds nothing
calibrate=false   or true: plan measures how fast this machine is
resamples=1000    of the documents, for intervals
slices=, least=, top=  slices of tokens that gaps compares; rows of improve: least count, number printed
laws=all          or a list of laws; method=ols, weighted, offset, robust, a list or all
family=, source=  narrow an analysis to families and to a source of observations (measured, or as imported)
store=DIR         folder of the store (--store DIR), default $RBPX_STORE or store/; s3://BUCKET/PATH is read only
plot=true         small plots under the tables (--plot): fit, klaw, regimes, emergence, gaps
format=table      or csv, json (--format F); report: html, md, tex, svg, pdf; output=FILE (--output FILE) where a verb
                  writes
experiment=NAME   {experiments}"""

_FLAGS = """\
-m, --multirun    sweep: -m model=a,b dataset=x,y runs every combination and ends with one table
--cfg job         print the configuration instead of running
--config-dir DIR  your own model/NAME.yaml and dataset/NAME.yaml
--version         print the version
Several processes: accelerate launch -m rbpx ... or torchrun --nproc-per-node 2 -m rbpx ...
Exit status: 0 done, 1 something failed while running, 2 the request is wrong."""


def help_text(verb: str | None) -> str:
    """The page of one verb, or of all."""
    if verb is None:
        lines = "\n".join(f"  {name:<10} {described.summary}" for name, described in verbs().items())
        return (
            "rbpx tells how language models get better with size, token by token.\n\n"
            "usage: python -m rbpx [VERB] [key=value ...]\n\n"
            f"verbs (default: run)\n{lines}\n\nkeys\n{_indent(_keys())}\n\nflags\n{_indent(_FLAGS)}\n\n"
            "python -m rbpx VERB --help explains one verb."
        )
    lesson = about(verb)
    keys = {"train": _train_keys, "import": _import_keys}.get(verb, _keys)()
    examples = "\n".join(f"  {line}" for line in lesson.examples)
    paragraphs = [textwrap.fill(text, 100, break_on_hyphens=False) for text in lesson.help.split("\n\n")]
    parts = [f"rbpx {verb}: {lesson.summary}", *paragraphs, f"examples\n{examples}", f"keys\n{_indent(keys)}"]
    return "\n\n".join([*parts, f"flags\n{_indent(_FLAGS)}"])


def _keys() -> str:
    conf = folder("conf")
    return _KEYS.format(
        models=_listed(_names(conf / "model")),
        datasets=_listed(_names(conf / "dataset")),
        experiments=_listed([path.stem for path in experiments("measure")]),
    )


def _listed(names: list[str]) -> str:
    return textwrap.fill(", ".join(names), 90, subsequent_indent=" " * 18, break_on_hyphens=False)


def _train_keys() -> str:
    return """\
size=SIZE         all (default), one, or a list
tokens=N          training tokens of each size
output=DIR        where the models go, default ladder/
text.site=DIR     folder with the installed packages, default this interpreter's
device=auto       or cpu, cuda; threads=N on CPU
--cfg job         prints the rest: packages, vocabulary, shapes, learning rate"""


def _import_keys() -> str:
    return """\
source=NAME       under which the observations are kept
ties=RULE         of their ranks: pessimistic, optimistic, mid; unless a column says it
family=, dataset= of the models, of the text; unless a column says it
protocol=, dtype=, revision=  if they are known
columns={...}     {our name: their name}, for columns of other names
store=DIR         folder of the store (--store DIR), default $RBPX_STORE or store/"""


def _names(place: Path) -> list[str]:
    return sorted(path.stem for path in place.glob("*.yaml"))


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
