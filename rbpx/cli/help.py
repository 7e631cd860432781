"""What `--help` teaches: a verb in, a page of text out; nothing heavy is imported for it."""

import textwrap
from itertools import groupby
from pathlib import Path
from typing import Final

from rbpx.analyses.registry import Analysis
from rbpx.cli.registry import about, verbs
from rbpx.config.places import experiments, folder
from rbpx.display.visible import visible_line

# What is said of each key, in the order of the page; {models}, {datasets} and {experiments} are the names there are.
_KEYS: Final[dict[str, str]] = {
    "model": """\
model=FAMILY      {models}
                  model=hub model.id=ORG/NAME or a folder; model.revision=step1000, a list, all or log: checkpoints""",
    "model.pickled": """\
model.pickled=true  take weights from pytorch_model.bin where there are no safetensors; tensors only, no code is run""",
    "model.quantise": """\
model.quantise=KIND  weights of linear layers rounded to int8, int4 or nf4 by torchao (pip install 'rbpx[quantise]')""",
    "model.bos": """\
model.bos=RULE    tokenizer (default): special tokens as the tokenizer adds them; add: exactly one BOS; none""",
    "size": """\
size=SIZE         all (default), one, or a list: size='[3k,25k]'""",
    "dataset": """\
dataset=NAME      {datasets}
                  dataset=file dataset.path=FILE for your own text; dataset.path= beside a known dataset reads that
                  from a file; dataset=hub dataset.hub=ORG/NAME dataset.split=test, also subset=, revision=""",
    "dataset.fields": """\
dataset.fields=   columns that make a document, '[question,answer]'; dataset.where='{{column: value}}' and
                  dataset.longer_than=N choose rows, dataset.articles=true joins lines into articles""",
    "dataset.chunk": """\
dataset.chunk=none  or paragraph, line: what of a text on this machine makes a document; dataset.name=NAME names it""",
    "dataset.target": """\
dataset.target=   COLUMN: rows are items, and only what follows dataset.context='[question]' is scored, or follows
                  'dataset.template="Q: {{question}}\\nA:"'; or dataset.choices=COLUMN dataset.right=COLUMN, of which
                  `items` shows accuracies; dataset.fewshot=5 puts examples in front""",
    "dataset.draw": """\
dataset.draw=HOW  whole: load, shuffle, take the first; parts, stream: the same documents, with less loaded;
                  first: the first rows, shuffled. What was drawn stays in the store, in samples/""",
    "protocol": """\
protocol=NAME     paper (default): documents cut to 512 tokens or the model's context; official: as the authors' code;
                  rolling: whole documents, protocol.window=1024 protocol.stride=512; harness: as lm-eval-harness""",
    "protocol.padding": """\
protocol.padding=counted  or masked: rows of the vocabulary without a token (Pythia has 27 or more)""",
    "k": """\
k=K               one, a list k='[1,10,100]', or log; default 1, 10, 100, 500, 1000, 2500, 10000 below V""",
    "n": """\
n=N               lengths of windows and sequences, in tokens: n='[1,2,5]'""",
    "S": """\
S=SIZE            sizes to predict, in non-embedding parameters: S='[1e9,1e10]'""",
    "D": """\
D=TOKENS          with S=: points of size and tokens; lists go pairwise, a single value with each of the other""",
    "doc": """\
doc=N             doc_id of the document that is shown""",
    "base": """\
base=, variant=   the two families: FAMILY, or FAMILY:VARIANT where models of a family were trained in several ways""",
    "a": """\
a=, b=            the two models: FAMILY/SIZE, with @REVISION and :DTYPE where there are several, or a run_id""",
    "ties": """\
ties=RULE         pessimistic (default), optimistic (default for protocol=official), mid""",
    "limit": """\
limit=N           documents at most, default 1000 (audit: 50 of each run), drawn with seed=42""",
    "dtype": """\
dtype=float32     or bfloat16, float16; logits are float32 in each""",
    "device": """\
device=auto       or cpu, cuda; tokens_per_batch=4096 changes speed, and by rounding logprobs (1e-5) and close ranks""",
    "deterministic": """\
deterministic=true  the same bits for any tokens_per_batch (not for any number of processes); a window a pass""",
    "best": """\
best=0            or 5: keeps the five best tokens of each place, for view; reads the model twice, 25 bytes a token""",
    "memory": """\
device=split      a model larger than one GPU, over all GPUs, memory and disk; memory='{{0: 20GiB, cpu: 60GiB}}' limits
                  each of them, and what it does not name holds nothing""",
    "parallel": """\
parallel=tensor   one model split over all processes of torchrun; parallel.tensor=4: over groups of four""",
    "shard": """\
shard=3/16        the third of 16 parts of the grid: measure, plan, status; plan ... --format jobs prints the lines""",
    "calibrate": """\
calibrate=false   or true: plan measures how fast this machine is""",
    "resamples": """\
resamples=1000    of the documents, for intervals""",
    "slices": """\
slices=           position, frequency, category, domain, or SQL conditions by name, '{{early: "position < 64"}}'""",
    "sql_timeout_s": """\
sql_timeout_s=60  seconds that SQL of yours may compute (sql, export, slices), null for no limit; sql_memory_mib= MiB
                  that it may hold, default half of the machine's or the container's memory""",
    "tolerance": """\
tolerance=2       how many times as far as rounding explains another engine may be from float32""",
    "engine": """\
engine=vllm       a running server measures: engine.url=http://host:8000/v1 dtype=bfloat16, its own""",
    "least": """\
least=20          times that a token id must be scored to be listed""",
    "top": """\
top=15            rows that are printed""",
    "laws": """\
laws=all          or a list of laws""",
    "axis": """\
axis=S            what laws are in: size; D (training tokens) or step, a law a size; C (FLOPs), the best a budget""",
    "form": """\
form=chinchilla   equation of a surface: chinchilla, kaplan, data_constrained, a list, or all, which compares them""",
    "objective": """\
objective=log_huber  or huber, least_squares: what a surface minimises; delta=0.001: where Huber's loss turns linear""",
    "budgets": """\
budgets=C         training FLOPs whose best S and D are asked for: budgets='[1e18,1e20]'; unique_tokens=U: tokens
                  that there are, beyond which they repeat (data_constrained)""",
    "register": """\
register=NAME     writes what is predicted into the store for good, before such a model is measured (see forecasts)""",
    "features": """\
features=all      or a list: cross_entropy, bits_per_byte, rbp, exact_match, error_entropy, soft_accuracy""",
    "held_out": """\
held_out=         sizes that are predicted, not fitted, as in '[7B,13B]'; the largest if left out""",
    "drop": """\
drop=0.1          share of the checkpoints that step 2 leaves out, smooth=5 averages; anchor='[0,1]' is one point more
                  (null: none); starts='{{h: 3}}', bounds='{{b: [0.9, 1]}}' of its constants""",
    "chance": """\
chance=C          success of guessing, where the task is not in conf/dataset; or '{{task: C}}'""",
    "checkpoints": """\
checkpoints=all   or last: of each training only its last checkpoint counts""",
    "last": """\
last=N            the mean of its last N checkpoints stands for each training (downstream: 5)""",
    "warm_up": """\
warm_up=TOKENS    where the law of a training begins; found if left out""",
    "next": """\
next=N            names N runs to train next; flops=C is what they may cost in all""",
    "method": """\
method=ols        weighted, offset, robust, a list or all: how laws are fitted""",
    "source": """\
family=, source=, variant=  narrow a question to families, a source (measured, or as imported), ways of training""",
    "store": """\
store=DIR         folder of the store (--store DIR), or s3://BUCKET/PATH; default $RBPX_STORE or store/""",
    "plot": """\
plot=true         small plots under the tables (--plot): fit, klaw, regimes, emergence, gaps""",
    "format": """\
format=table      or csv, json, html, md, tex, svg, pdf (--format F)""",
    "group": """\
group=NAME        of many groups those with sections of their own: one, a list or all, as the report's table has it""",
    "fresh": """\
fresh=true        compute again what was asked before of the same runs; without it, it is printed from the store""",
    "spreadsheet": """\
spreadsheet=true  in csv, put a ' before text that begins with = + - @, a tab or a line end, which spreadsheets run""",
    "width": """\
width=INCHES      of a figure with its axes; font_size=POINTS, font=NAME, legend=top, right, bottom, left or none""",
    "output": """\
output=FILE       where a verb writes (--output FILE)""",
    "experiment": """\
experiment=NAME   {experiments}""",
}
# What is said of a key in place of that on the page of a question, which looks at what the store holds.
_NARROWING: Final[dict[str, str]] = {
    "model": """\
model=FAMILY      narrows to a family that the store holds, model.revision=step1000 to a revision of it""",
    "size": """\
size=SIZE         narrows to sizes: all (default), one, or a list: size='[3k,25k]'""",
    "dataset": """\
dataset=NAME      narrows to a text, measured or imported""",
    "protocol": """\
protocol=NAME     narrows to texts that were read so: paper, official, rolling, harness""",
    "plot": """\
plot=true         small plots under the tables (--plot)""",
    "format": """\
format=table      or csv, json, html, md, tex; svg and pdf: its figures (--format F)""",
    "output": """\
output=FILE       where that is written, a folder for several figures (--output FILE)""",
}
_NARROWS: Final = ("model", "size", "dataset", "protocol", "source")
_SHOWS: Final = ("store", "format", "spreadsheet", "output")
_MANY_ALIKE: Final = 3  # datasets or studies whose names begin alike

_MANY = "-m, --multirun    sweep: -m model=a,b dataset=x,y runs every combination and ends with one table"
_PROCESSES = "Several processes: torchrun --nproc-per-node 2 -m rbpx ..., or on GPUs accelerate launch -m rbpx ..."
_FLAGS = """\
--cfg job         print the configuration instead of running
--config-dir DIR  your own model/NAME.yaml and dataset/NAME.yaml; --trust-config lets them name code to run
--version         print the version"""
_STATUS = "Exit status: 0 done, 1 something failed while running, 2 the request is wrong."


def help_text(verb: str | None) -> str:
    """The page of one verb, or of all."""
    if verb is None:
        lines = "\n".join(f"  {name:<10} {described.summary}" for name, described in verbs().items())
        return (
            "rbpx tells how language models get better with size, token by token.\n\n"
            "usage: python -m rbpx [VERB] [key=value ...]\n\n"
            f"verbs (default: run)\n{lines}\n\nkeys\n{_indent(_keys())}\n\n"
            f"flags\n{_indent(chr(10).join([_MANY, _FLAGS, _PROCESSES, _STATUS]))}\n\n"
            "python -m rbpx VERB --help explains one verb."
        )
    lesson = about(verb)
    keys = {"train": _train_keys, "import": _import_keys}.get(verb, lambda: _keys_of(verb))()
    examples = "\n".join(f"  {line}" for line in lesson.examples)
    paragraphs = [textwrap.fill(text, 100, break_on_hyphens=False) for text in lesson.help.split("\n\n")]
    parts = [f"rbpx {verb}: {lesson.summary}", *paragraphs, f"examples\n{examples}"]
    parts += [f"keys\n{_indent(keys)}"] if keys else []
    flags = [_MANY, _FLAGS, *([_PROCESSES] if lesson.primary in ("measure", "audit") else []), _STATUS]
    return "\n\n".join([*parts, f"flags\n{_indent(chr(10).join(flags))}", "All keys: python -m rbpx --help"])


def keys_of(verb: str) -> tuple[str, ...]:
    """The keys that the page of a verb explains, in its order."""
    lesson = about(verb)
    if isinstance(lesson, Analysis):
        plot = ("plot", "width") if lesson.draws else ()
        kept = () if lesson.measures else ("fresh",)
        asked: tuple[str, ...] = (*_NARROWS, *lesson.keys, *plot, *kept, *_SHOWS)
    else:
        asked = (*lesson.keys, *(("store",) if lesson.needs_store else ()))
        asked += ("spreadsheet",) if "format" in asked and lesson.primary == "analyse" else ()
    return tuple(name for name in _KEYS if name in asked)


def _keys_of(verb: str) -> str:
    lesson = about(verb)
    texts = dict(_KEYS)
    if lesson.primary in ("analyse", "audit"):
        texts |= {name: text for name, text in _NARROWING.items() if name not in _SHOWS}
    if isinstance(lesson, Analysis):
        texts |= _NARROWING
    return _filled("\n".join(texts[name] for name in keys_of(verb)))


def _keys() -> str:
    return _filled("\n".join(_KEYS.values()))


def _filled(text: str) -> str:
    conf = folder("conf")
    return text.format(
        models=_listed(_names(conf / "model")),
        datasets=_listed(
            _joined([name for name in _names(conf / "dataset") if name not in ("file", "hub")])
        ),  # told below
        experiments=_listed(_joined([path.stem for path in experiments("measure")])),
    )


def _joined(names: list[str]) -> list[str]:
    """Names in order, those that begin alike in braces, as a shell takes them: ladder_{optimum, seeds, surface}."""
    joined = []
    for stem, members in groupby(sorted(names), lambda name: name.partition("_")[0]):
        alike = list(members)
        rest = ", ".join(name.partition("_")[2] for name in alike)
        joined += [f"{stem}_{{{rest}}}"] if len(alike) >= _MANY_ALIKE else alike
    return joined


def _listed(names: list[str]) -> str:
    return textwrap.fill(
        visible_line(", ".join(names)), 118, initial_indent=" " * 18, subsequent_indent=" " * 18, break_on_hyphens=False
    ).lstrip()


def _train_keys() -> str:
    return """\
size=SIZE         all (default), one, or a list
tokens=8m         budget of the model that stands for its size
budgets='[1m,2m]' further ones; '{3k: [1m,2m]}' for some sizes, null for none
flops='[1e12]'    budgets of compute: C / (6 N) tokens for each size, where that is in flops_tokens='[0.5m,20m]'
checkpoints=8     log-spaced raw checkpoints, before any decay; '{7k: 8}' for some sizes
seeds='[43,44]'   further seeds at tokens=; '{3k: [43,44]}' for some sizes
unique_tokens=1m  reads only so much of the text, again and again
output=DIR        where the models go, default ladder/
text.site=DIR     folder with the installed packages, default this interpreter's
device=auto       or cpu, cuda; threads=N on CPU
--cfg job         prints the rest: packages, vocabulary, shapes, learning rate"""


def _import_keys() -> str:
    return """\
source=NAME       under which the observations are kept
ties=RULE         of their ranks: pessimistic, optimistic, mid; unless a column says it; not for losses alone
family=, dataset= of the models, of the text; unless a column says it
protocol=, dtype=, revision=, variant=  if they are known
columns={...}     {our name: their name}, for columns of other names: {S: params, D: tokens, loss_nats: loss}
texts={...}       {text: {quantity: column}}, where several texts stand side by side in columns
runs={...}        {quantity: {column: S}}, where each run has a column; {S: 60M, column: NAME, variant: x,
                  tokens_per_step: 4M} in place of S says more of a run
where=SQL         a condition on the columns of the file: only rows for which it is true come in
engine=, engine_version=, family=, size=, S=, dataset=, vocab_size=, dtype=  of `import tokens FILE`
--dry-run         says what would come in, by text and quantity, and writes nothing (dry_run=true)
store=DIR         folder of the store (--store DIR), default $RBPX_STORE or store/"""


def _names(place: Path) -> list[str]:
    return sorted(path.stem for path in place.glob("*.yaml"))


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
