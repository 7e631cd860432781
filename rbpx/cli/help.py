"""What `--help` teaches: a verb in, a page of text out; nothing heavy is imported for it."""

import textwrap
from pathlib import Path

from rbpx.config.places import experiments, folder

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
            "python -m rbpx -m model=gpt2,pythia dataset=wikipedia,humaneval",
            "python -m rbpx dataset=wikitext dataset.path=wiki.test.raw",
            "python -m rbpx model=hub model.id=FOLDER dataset=pydoc",
            "python -m rbpx model=hub model.id='[A,B,C]' model.family=mine dataset=file dataset.path=notes.jsonl",
        ),
    ),
    "measure": (
        "only measure",
        "As `run`, without the laws.",
        ("python -m rbpx measure model=ladder dataset=pydoc",),
    ),
    "record": (
        "run a named study, and write what it gives into its file",
        """Measures what a study of experiments/ still needs, does its analyses, and writes the result that the study
names in SQL into the end of its file, in place of what stood there, with the runs it comes from. --output FILE writes
elsewhere. `run experiment=NAME` does the same without writing.""",
        (
            "python -m rbpx record experiment=rbp_figure_3 --output figure_3.yaml",
            "python -m rbpx record experiment=rbp_figure_3 model=ladder --output figure_3.yaml",
        ),
    ),
    "plan": (
        "what a grid would cost before it runs, a row a cell",
        """Prints for each cell S, the memory at the peak, FLOPs, tokens, disk in the store, the expected time, whether
it is done, and what makes it fit into the memory that is free: its dtype, bfloat16, device=split, or nothing. Nothing
is downloaded or measured. FLOPs are 2 S a token, 2 V D for the logits of a scored one, and 4 L A T for attention
(arXiv 2001.08361, table 1; 2203.15556, appendix F). Tokens are exact where the store holds a run of the same text and
tokenizer, else estimated (~) from the text, and empty where the text is not here. Times come from the run in the store
on the same device and dtype whose FLOPs a token are nearest, or from a model run for a second (calibrate=true).""",
        (
            "python -m rbpx plan model=pythia dataset=pydoc",
            "python -m rbpx plan model=pythia dataset=pydoc calibrate=true",
            "python -m rbpx plan -m model=gpt2,pythia dataset=pydoc,stdlib dtype=bfloat16 --format json",
        ),
    ),
    "fit": (
        "fit every law to what the store holds",
        """Fits every law to the runs in the store, narrowed by model, size, dataset, k, ties and laws, prints them side
by side and keeps them in `fits`. A law joins one run per size, all alike in text, protocol, dtype and revision.
method= chooses least squares (ols, the paper's), weights by the variance over documents (weighted), an irreducible
term y = E + C S^-alpha (offset), Huber's loss (robust), or all. 95 % intervals hold text and models; --format json has
them apart. `form` says whether the data call for an offset.""",
        (
            "python -m rbpx fit",
            "python -m rbpx fit model=ladder dataset=stdlib k='[1,2,5]' ties=mid",
            "python -m rbpx fit k=log laws='[rbp]' --format csv",
            "python -m rbpx fit laws='[rbp,cross_entropy]' method=all",
            "python -m rbpx fit k='[1,10,100]' --plot",
        ),
    ),
    "klaw": (
        "how RBP_k grows with k, and what a larger k is worth in size",
        """Fits -ln RBP_k = C k^-alpha_k to each model at its fixed size (arXiv 2510.20387, appendix B, table 1), at the
paper's k = 1 to 100 unless k= says otherwise. Beside the law in S it gives an exchange rate: how many times larger a
model must be to do at k = 1 what this one does at k = 10.""",
        ("python -m rbpx klaw", "python -m rbpx klaw dataset=stdlib k='[1,2,5,10]' --format csv"),
    ),
    "regimes": (
        "up to which k the law stands, and the noise that ends it",
        """Fits -ln RBP_k = C S^-alpha at every k up to the vocabulary (arXiv 2510.20387, section 3.3, figure 6) and
sets beside it the noise of a small count of misses: binomial, and from the choice of documents. The law stands up to
the largest k whose alpha is told from 0, and every smaller k with it.""",
        ("python -m rbpx regimes dataset=pydoc", "python -m rbpx regimes k='[1,10,100,1000]' --format json"),
    ),
    "emergence": (
        "how fast N tokens in a row become right, measured and predicted",
        """p_{N,k} is the share of windows of N consecutive tokens whose ranks are all at most k; if tokens were
independent, -ln p_{N,k} = C N S^-alpha (arXiv 2510.20387, eqs. 6 to 8, figure 7). Prints measured windows beside that
prediction and a corrected one, a law for each N and the joint law, and the sizes at which p crosses 0.1, 0.5, 0.9.""",
        ("python -m rbpx emergence dataset=pydoc", "python -m rbpx emergence k=1 n='[1,2,5,10,50]' --format csv"),
    ),
    "gaps": (
        "how the gap between two datasets, or two slices of one, changes with size",
        """For every two texts that a family was measured on, L_A / L_B = G (S / S_ref)^delta, L the cross-entropy or
-ln RBP_k (arXiv 2510.24626). A is the harder text; delta < 0 says that the gap closes, and at which size it would be
closed, with intervals for documents and models.

slices= compares tokens of one text instead, each slice with the first: position (buckets 1-15, 16-63, 64-255, 256+),
frequency (deciles of the scored tokens by how often their id is scored, most frequent first), or your own, each a plain
word with an SQL condition over doc_id, position, token_id, text, frequency (a count), decile, n_tokens (of the
document), greater, ties, logprob and rank. A single condition is compared with the rest. Inside the quotes of a
condition SQL's own strings are written with $$: text = $$def$$. Slices hold the same documents, which are resampled
together. A condition on rank or logprob chooses other tokens at each size; the gap is then marked different tokens.""",
        (
            "python -m rbpx gaps model=ladder",
            "python -m rbpx gaps k='[1,100]' --format json",
            "python -m rbpx gaps dataset=pydoc slices=position",
            'python -m rbpx gaps dataset=pydoc slices=\'{early: "position < 64", late: "position >= 64"}\'',
            "python -m rbpx gaps dataset=pydoc slices='{digits: \"regexp_matches(text, $$^[0-9]+$$)\"}'",
        ),
    ),
    "choices": (
        "what protocol, BOS, dtype and tie rule do to RBP_k, cross-entropy, alpha",
        """For each text that a family was measured on in more than one way (protocol, window, BOS, dtype), every way
under every tie rule beside the reference: the paper's protocol in float32, ties pessimistic. RBP_k and cross-entropy of
the largest size and alpha of all sizes are differences from the reference at the same sizes, with intervals over
documents drawn on both sides together, and for alpha over models. Measure the ways first: measure dtype=bfloat16.""",
        ("python -m rbpx choices dataset=pydoc", "python -m rbpx choices k='[1,100]' --format csv"),
    ),
    "units": (
        "bits per byte and rank/V, to compare families with different tokenizers",
        """For each model: nats per token beside bits per byte (nats of the scored tokens / ln 2 / bytes of the text
that they stand for; the first token is not predicted, so its bytes do not count), tokens per byte, the median, 90 % and
99 % quantile of the rank and of rank/V, and RBP at k = V/1000 and V/100. Nats per token and ranks compare models of one
tokenizer, the others any. Families measured on the same text stand side by side; intervals are over documents.""",
        ("python -m rbpx units dataset=pydoc", "python -m rbpx units family='[ladder]' ties=mid --format csv"),
    ),
    "improve": (
        "which tokens improve with size",
        """For each occurrence of a token, the slope of its nats (-logprob) on ln S over all sizes; for each token id
the mean slope with an interval over documents, nats and RBP_k (k= gives one, default 1) at the smallest and the largest
size, and its share of the whole improvement in cross-entropy. Those that got worse follow. least= is how often a token
id must be scored to be listed, top= how many are printed; --format csv or json gives all of them.""",
        ("python -m rbpx improve dataset=pydoc", "python -m rbpx improve dataset=pydoc least=50 k=10 --format csv"),
    ),
    "ranks": (
        "the distribution of the ranks: lognormal, its rivals, what they derive",
        """Fits the published lognormal (ranks from 2 up, arXiv 2510.20387, appendix D) and seven distributions over
1..V to the ranks of each run, by maximum likelihood: lognormal, power law, power law cut off, Zipf-Mandelbrot, Weibull,
negative binomial, and a lognormal with a share of its own at rank 1. Prints what each loses to the best, mu and sigma
against S, and the laws that a distribution derives for RBP_k and cross-entropy beside the measured ones.""",
        ("python -m rbpx ranks dataset=pydoc", "python -m rbpx ranks k='[1,10,100]' ties=optimistic --format csv"),
    ),
    "entropy": (
        "cross-entropy taken apart by rank, a law for each term",
        """CE = H(P) + KL(P || Q) - ln(sum S), error-entropy, self-alignment and confidence (arXiv 2510.04067), for each
run, with the share of each term and how it changes with S. H(P) of counted ranks is too small; a jackknife over
documents takes away a part of that, an extrapolation over halves and quarters of them tends to take away too much.
Where the two differ by less than the standard error, what is left is noise. Ranks are strict in the source: compare
with ties=optimistic.""",
        ("python -m rbpx entropy dataset=pydoc", "python -m rbpx entropy ties=optimistic --format json"),
    ),
    "outcomes": (
        "what passing and failing sequences tell of single tokens",
        """A benchmark tells for each sequence of N tokens whether all of it was right. If tokens are independent, a
sequence passes with probability exp(-C N S^-alpha), so C, alpha and RBP_k of single tokens come back by maximum
likelihood (arXiv 2510.20387, eqs. 5 to 8). Give a file of your own rows, with columns model, S (or
non_embedding_params), n (tokens of a sequence), passed (true or false; or a count, with trials), and if you have them
k and group (task or document, resampled whole). Without a file the documents in the store are cut into sequences, and
what comes back is held against the tokens: hits gather, so the longer N, the further off; two corrections follow. Two
sizes are enough.""",
        (
            "python -m rbpx outcomes FILE.csv",
            "python -m rbpx outcomes dataset=pydoc k=10 n='[1,2,5,10]'",
        ),
    ),
    "tokenwise": (
        "which tokens are right, learned from pass and fail alone",
        """Forgets the tokens of the largest model and keeps which sequences of N tokens passed. Learns from that, and
from features of each token (position, frequency of its id, log-probability and rank under the next smaller model), how
likely each token is a hit, by the unbiased risk of aggregate observations (arXiv 2306.11343). Judged on documents that
were left out, against the true hits: AUC, log loss, calibration; beside it what every token's own label would have
taught, each token taken for its sequence, and no features at all. Name two sizes to choose the models.""",
        (
            "python -m rbpx tokenwise dataset=pydoc k=10",
            "python -m rbpx tokenwise size='[200k,1.2m]' n='[5,10]' --format json",
        ),
    ),
    "predict": (
        "what the laws say of other sizes, and how right they were",
        """Fits every law to the smallest sizes and holds it against the larger ones, on the same tokens, so that laws
can be ranked by what they predict. Then extrapolates each to the sizes S with a 95 % interval for a new model, and
says how far outside the fitted sizes that is.""",
        ("python -m rbpx predict", "python -m rbpx predict dataset=stdlib S='[1e7,1e8]' method='[ols,offset]'"),
    ),
    "report": (
        "one page with the laws, figures and tables of a store",
        """Does fit, regimes, klaw, predict, emergence, ranks, entropy and gaps over the runs in the store, narrowed by
model, size, dataset, k, ties and laws as they are, and writes one HTML file that needs no network: a summary in plain
sentences, for each family and text the laws with their intervals and the figures of arXiv 2510.20387 (3 to 9), each
with its values, its SQL and its runs; tables that sort and download as CSV; light and dark. --format md gives the same
as Markdown, tex tables for a paper in the shape of tables 1 and 2, svg and pdf a folder of figures. --output names the
file or folder; what is there and is no report is not overwritten.""",
        (
            "python -m rbpx report",
            "python -m rbpx report dataset=pydoc k='[1,10,100]' --output pydoc.html",
            "python -m rbpx report --format pdf --output figures",
            "python -m rbpx report --format tex --output tables.tex",
        ),
    ),
    "audit": (
        "what float32 would change: ranks, RBP_k, cross-entropy, alpha",
        """Measures 50 documents (limit=) of each run again in float32, the same ones for every size, and sets them
beside what is stored: how many ranks moved and how far, how many tokens crossed k, what RBP_k, cross-entropy and the
alpha of their laws change by, with intervals over documents drawn on both sides together. Model, tokenizer and text
must be those of the run. dtype= narrows to runs of that dtype; a run in float32 comes out the same but for rounding, or
the table says no. device= and tokens_per_batch= may differ from then. Nothing is written.""",
        (
            "python -m rbpx audit dataset=pydoc",
            "python -m rbpx audit dtype=bfloat16 limit=20 k='[1,10,100,1000]' --format json",
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
    "import": (
        "bring other people's results into `observations`",
        """Reads RBP_k, or shares of windows of n hits, from CSV, JSON, JSONL or Parquet: one row per model, text, k, or
columns rbp_1, rbp_10, ... Columns are found by name (model, S or non_embedding_params, dataset, k, rbp, n, n_tokens,
cross_entropy_nats ...); columns='{rbp: their_name}' names others. Every row is checked; a wrong one is named with
its line and keeps all out. Analyses take imported rows with source=NAME and the ties they came with.""",
        (
            "python -m rbpx import FILE.csv source=NAME ties=optimistic family=gpt2 dataset=wikipedia",
            "python -m rbpx fit source=NAME ties=optimistic",
        ),
    ),
    "export": (
        "write a relation or a query as CSV, JSON or Parquet",
        "Takes the name of a relation or a SELECT; the ending of --output says the format, without it CSV is printed.",
        (
            "python -m rbpx export observations --output observations.parquet",
            'python -m rbpx export "SELECT size, cross_entropy_nats FROM runs" --output runs.csv',
        ),
    ),
    "show": (
        "print where one run or fit comes from",
        "Takes a run_id, cell_key or fit_id; a fit is fitted again from what it carries, and the difference shown.",
        ("python -m rbpx show ID",),
    ),
    "status": (
        "print what the store holds, what is being measured and what failed",
        """Counts runs and tokens, and shows as a grid which model is done, running, failed or missing on which text:
missing is what was measured on another text. Name a grid (model= and dataset=, also with -m) to see how far it is. A
process that measures leaves a mark in the store while it does; one that was stopped is shown as stopped.""",
        (
            "python -m rbpx status",
            "python -m rbpx status model=ladder dataset=pydoc",
            "python -m rbpx status -m model=ladder,pythia dataset=pydoc,stdlib",
        ),
    ),
    "store": (
        "keep house in the store",
        """`verify` reads every byte: each run against the sha256 and the counts of its manifest, requests and fits
against the runs that they name; prints a line for each fault with what to do, and exits 1. What is damaged is left out
of every answer meanwhile, with a line that names it. `merge OTHER` copies what another store holds and this one lacks,
verified on the way; a run that is in both with other bytes is named and stays as it is here. `rebuild` makes the index
rbpx.duckdb anew, `gc` drops fits whose runs are gone, `rm RUN` removes a run, `rm SOURCE` what was imported.""",
        (
            "python -m rbpx store verify",
            "python -m rbpx store merge OTHER",
            "python -m rbpx store rebuild",
            "python -m rbpx store gc",
        ),
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
    "completion": (
        "print what makes a shell complete `rbpx`",
        """Prints a script for bash or zsh that completes verbs, keys, names of models, texts and studies, and flags of
the console script `rbpx`; `python -m rbpx` is not completed, since there a shell completes for Python. For bash put
eval "$(rbpx completion bash)" into ~/.bashrc, for zsh eval "$(rbpx completion zsh)" into ~/.zshrc.""",
        ("python -m rbpx completion bash",),
    ),
}

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


def lesson(verb: str) -> tuple[str, str, tuple[str, ...]]:
    """What a verb does in a few words, how in a paragraph, and examples."""
    return _VERBS[verb]


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
