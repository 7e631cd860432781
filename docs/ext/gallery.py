"""The gallery: a picture a question, each with the command that gives it, its data and its page."""

from dataclasses import dataclass
from typing import Final, Literal

from ext.markdown import block

PLACE: Final = "_static/gallery"
THEMES: Final = ("light", "dark")


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        name: of its files, in _static/gallery.
        question: what it answers.
        kind: whether it is the chart of an answer in Python, or what a terminal shows.
        words: of the command behind `python -m rbpx`; a chart's are the verb and its keys.
        alt: what is to be seen, for who does not see it.
        says: what to look for; numbers stand in the picture and its data, not here.
        page: where more is said.
        study: what brings its measurements in; None where `make demo` has them.
        task: a task that the ladder is measured on first.
        also: what else is measured of the ladder first, as words of `measure`.
        lines: of the terminal that are shown; None is all.
        model: whose rows are the data, where all would be many.
    """

    name: str
    question: str
    kind: Literal["chart", "terminal"]
    words: tuple[str, ...]
    alt: str
    says: str
    page: str
    study: str | None = None
    task: str | None = None
    also: str | None = None
    lines: int | None = None
    model: str | None = None

    def command(self) -> str:
        """The command line, as a reader types it."""
        return "python -m rbpx " + " ".join(f"'{word}'" if set("[]{} ") & set(word) else word for word in self.words)

    def before(self) -> list[str]:
        """Commands that bring in what is drawn."""
        lines = [f"python -m rbpx experiment={self.study}"] if self.study else []
        measured = [f"dataset={self.task}"] if self.task else [self.also] if self.also else []
        return lines + [f"python -m rbpx measure model=ladder {words}" for words in measured]


PICTURES: Final = (
    Picture(
        "laws",
        "How does a family scale with size?",
        "chart",
        ("fit", "model=ladder", "dataset=stdlib", "laws=rbp", "k=[1,10,100]"),
        "Minus ln RBP at k = 1, 10 and 100 against the number of parameters, on logarithmic axes: "
        "for each the points of seven models, which fall along a line with its band.",
        "Points are models, lines are laws; a band holds a new model 95 times of 100. Where points leave the line in "
        "a bow, the table says `bends`.",
        "explanation/laws.md",
    ),
    Picture(
        "surface",
        "And with size, tokens and compute together?",
        "chart",
        ("surface", "source=gemstones"),
        "Loss of the Gemstones over size and training tokens: curves of equal loss over the points of all checkpoints, "
        "with the best split of each budget of compute.",
        "Published losses of 22 models along their training, with curves of equal loss. The dotted line is the best "
        "split of each budget of compute into size and tokens.",
        "explanation/surfaces.md",
        study="published_gemstones",
    ),
    Picture(
        "next",
        "What will the next model do?",
        "chart",
        ("downstream", "source=olmo", "dataset=hellaswag", "held_out=[peteish7_eval_anneal,peteish13_eval_final]"),
        "Accuracy on HellaSwag against the size of the model: small models that were fitted, and what was predicted "
        "and measured of models of 7B and 13B, with intervals.",
        "Success of two large models on a task, predicted from sixteen small trainings of the OLMo ladder, and "
        "measured.",
        "howto/downstream.md",
        study="published_olmo_ladder",
    ),
    Picture(
        "text",
        "Which tokens get better?",
        "terminal",
        ("view", "dataset=pydoc"),
        "A text in a terminal whose tokens have the colour of their rank: plain where the model's first guess is "
        "right, blue to rank 10, yellow to 100, orange beyond.",
        "The document on which larger models gain most, under the largest model.",
        "howto/compare.md",
        lines=24,
        model="ladder/3.2m",
    ),
    Picture(
        "attempts",
        "How often does one of k attempts succeed?",
        "chart",
        ("attempts", "source=ladder_sampled", "dataset=python_identifiers", "k=[1,10,100]"),
        "Minus ln pass@k against the number of attempts, on logarithmic axes: for each of seven models nearly straight "
        "lines, which go on in dashes to a hundred times the samples; thin curves of single items plunge beside them.",
        "Thin curves are single items, which fall exponentially in k; all items together fall as a power. Dashes are "
        "predicted from a hundred samples.",
        "howto/attempts.md",
        study="attempts_sampled",
    ),
    Picture(
        "item",
        "What happens on one item of a task?",
        "terminal",
        ("view", "dataset=python_keywords"),
        "An item of a task in a terminal: its context, the right answer in the colours of its ranks, and a table with "
        "the probability and the ranks of the answer under each of seven models.",
        "The item on which larger models gain most, under every size.",
        "howto/tasks.md",
        task="python_keywords",
    ),
)


def page() -> str:
    """The gallery as Markdown."""
    return "\n\n".join(_shown(picture) for picture in PICTURES)


def _shown(picture: Picture) -> str:
    light, dark = (f"{PLACE}/{picture.name}-{theme}.svg" for theme in THEMES)
    commands = block("\n".join([*picture.before(), picture.command()]))
    data = f"[Data]({PLACE}/{picture.name}.csv)"
    return (
        f"## {picture.question}\n\n{picture.says} {data}, [more]({picture.page}).\n\n{commands}\n\n<picture>\n"
        f'  <source media="(prefers-color-scheme: dark)" srcset="{dark}">\n'
        f'  <img alt="{picture.alt}" src="{light}">\n</picture>'
    )
