"""What `--help` teaches: a verb in, a page of text out; nothing heavy is imported for it."""

from pathlib import Path

from rbpx.launch import experiments, folder

_VERBS = {
    "run": (
        "measure the cells that are missing, then print the laws side by side",
        """Measures every cell of the grid (family x size x dataset) that the store does not hold yet, then fits and
prints the scaling laws of that grid: -ln RBP_k = C S^-alpha (arXiv 2510.20387, eq. 5), cross-entropy, the laws
derived from a lognormal of the ranks, and the error-entropy decomposition (arXiv 2510.04067). Stop it and start it
again: what is measured stays.""",
        (
            "python -m rbpx",
            "python -m rbpx model=ladder dataset=stdlib size='[3k,25k,200k]'",
            "python -m rbpx -m model=ladder dataset=pydoc,stdlib",
            "python -m rbpx model=hub model.id=FOLDER dataset=pydoc",
            "python -m rbpx model=hub model.id='[A,B,C]' model.family=mine dataset=file dataset.path=notes.jsonl",
        ),
    ),
    "measure": (
        "only measure",
        "As `run`, without the laws.",
        ("python -m rbpx measure model=ladder dataset=pydoc",),
    ),
    "fit": (
        "fit every law to what the store holds",
        """Fits every law to the runs in the store, narrowed by model, size, dataset, k, ties and laws, prints them side
by side and keeps them in `fits`. A law joins one run per size, all alike in text, protocol, dtype and revision.""",
        (
            "python -m rbpx fit",
            "python -m rbpx fit model=ladder dataset=stdlib k='[1,2,5]' ties=mid",
            "python -m rbpx fit k=log laws='[rbp]' --format csv",
        ),
    ),
    "import": (
        "bring in other people's results",
        """Brings RBP_k (or p_{N,k}) and cross-entropy from CSV, Parquet, JSON or JSONL into `observations`, beside what
was measured. Needed of each row: a model or size, non-embedding parameters S, dataset, k and rbp; or a column rbp_K for
each k. Shares are in [0, 1], cross-entropy in nats. A row that is wrong is named, and then nothing is imported.""",
        (
            "python -m rbpx import results.csv source=their_paper ties=optimistic family=gpt2",
            "python -m rbpx import results.parquet source=team_b ties=mid columns='{rbp: hit_rate, k: top}'",
        ),
    ),
    "export": (
        "write a relation or the answer to a query",
        """Writes any relation, or the answer to one SELECT, as CSV, JSON or Parquet; the suffix of --output tells
which. Without --output it goes to stdout. A file is written whole or not at all.""",
        (
            "python -m rbpx export observations --output observations.parquet",
            "python -m rbpx export \"SELECT size, rbp FROM rbp_at(42, 'mid')\" --format json",
        ),
    ),
    "sql": (
        "ask the store in SQL, reading only",
        """Answers one SELECT (DuckDB's dialect) over the relations runs, tokens, rank_counts, documents, vocab,
observations, fits, rank_fits and failures; rbp_at(k, ties) gives RBP at any k.""",
        (
            'python -m rbpx sql "SELECT size, n_tokens, cross_entropy_nats FROM runs"',
            "python -m rbpx sql \"SELECT size, rbp FROM rbp_at(42, 'mid')\" --format csv",
        ),
    ),
    "show": (
        "print where one run or fit comes from",
        "Takes a run_id, cell_key or fit_id; an imported run shows its file, source and rows.",
        ("python -m rbpx show ID",),
    ),
    "status": (
        "print what the store holds and what failed",
        "Lists runs, imported results and failures.",
        ("python -m rbpx status",),
    ),
    "store": (
        "keep house in the store",
        """`rebuild` makes the index rbpx.duckdb anew, `gc` drops fits whose runs are gone, `rm RUN` removes a run,
`rm SOURCE` all that was imported from a source.""",
        ("python -m rbpx store rebuild", "python -m rbpx store gc"),
    ),
    "train": (
        "train a ladder of small models",
        """Trains every size of a ladder on the Python source of installed packages, all on the same tokens in the same
order, and writes ordinary Hugging Face folders. The bundled ladder came from experiment=ladder. A killed training
continues from its last checkpoint.""",
        (
            "python -m rbpx train size=3k tokens=1_000_000",
            "python -m rbpx train text.site=FOLDER output=my_ladder",
        ),
    ),
}

_KEYS = """\
model=FAMILY      {models}; model=hub model.id=ORG/NAME or a folder
size=SIZE         all (default), one, or a list: size='[3k,25k]'
dataset=NAME      {datasets}; dataset=file dataset.path=FILE for your own text
protocol=paper    documents cut to 512 tokens or the model's context
k=K               one, a list k='[1,10,100]', or log; default 1, 10, 100, 500, 1000, 2500, 10000 below the vocabulary
ties=RULE         pessimistic (default), optimistic, mid
limit=N           documents at most, default 1000, drawn with seed=42
dtype=float32     or bfloat16, float16; logits are float32 in each
device=auto       or cpu, cuda; tokens_per_batch=4096 changes speed, never results
resamples=1000    of the documents, for intervals
laws=all          or a list of laws
store=DIR         folder of the store (--store DIR), default $RBPX_STORE or store/
format=table      or csv, json (--format F); output=FILE (--output FILE) where a verb writes
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
        verbs = "\n".join(f"  {name:<9} {short}" for name, (short, _, _) in _VERBS.items())
        return (
            "rbpx tells how language models get better with size, token by token.\n\n"
            "usage: python -m rbpx [VERB] [key=value ...]\n\n"
            f"verbs (default: run)\n{verbs}\n\nkeys\n{_indent(_keys())}\n\nflags\n{_indent(_FLAGS)}\n\n"
            "python -m rbpx VERB --help explains one verb."
        )
    short, long, examples = _VERBS[verb]
    keys = {"train": _train_keys, "import": _import_keys}.get(verb, _keys)()
    shown = "\n".join(f"  {line}" for line in examples)
    return f"rbpx {verb}: {short}\n\n{long}\n\nexamples\n{shown}\n\nkeys\n{_indent(keys)}\n\nflags\n{_indent(_FLAGS)}"


def _keys() -> str:
    conf = folder("conf")
    return _KEYS.format(
        models=", ".join(_names(conf / "model")),
        datasets=", ".join(_names(conf / "dataset")),
        experiments=", ".join(path.stem for path in experiments("measure")),
    )


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
source=NAME       whose results these are; `measured` is rbpx's own
ties=RULE         pessimistic, optimistic or mid, for rows without a column `ties`; there is no default
family=NAME       for rows without a column family; so are dataset=, revision=, protocol=, dtype=
columns='{...}'   what a column holds where its name does not tell: columns='{rbp: my_column}'
store=DIR         folder of the store (--store DIR), default $RBPX_STORE or store/

columns are known by name: family, size (else the last part of model), model or hub_id or model_name, revision,
non_embedding_params or S, dataset, text_hash, protocol, dtype, k, n (window length, default 1), ties,
rbp or p_nk or p, n_tokens, cross_entropy_nats or ce; rbp_1, rbp_10, ... hold one k each"""


def _names(place: Path) -> list[str]:
    return sorted(path.stem for path in place.glob("*.yaml"))


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
