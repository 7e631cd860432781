"""What runs and groups are called where several stand beside each other: names, told apart where two are the same."""

from collections import Counter
from collections.abc import Sequence

from rbpx.groups.group import Group, Run


def labels_of(runs: Sequence[Run]) -> list[str]:
    """The size of each run, with as much as tells those of one size apart."""
    seeds = [f"seed {run.training_seed}" for run in runs]
    places = [f"{run.axis.value} = {run.x:g}" for run in runs]
    revisions = [f"revision {run.revision}" for run in runs]
    return _told_apart([run.size for run in runs], seeds, places, revisions, [f"model {run.model}" for run in runs])


def titles_of(groups: Sequence[Group], names: Sequence[str] | None = None) -> list[str]:
    """The title of each group, or other names of them, with what no title says: the text drawn, the tie rule."""
    texts = [f"text {str(group.first.text_hash)[:8]}" for group in groups]
    return _told_apart(
        names or [each.title for each in groups], texts, [f"ties {group.ties.value}" for group in groups]
    )


def _told_apart(names: Sequence[str], *more: Sequence[str]) -> list[str]:
    """Names, each with as much of `more` as tells it from others of the same name."""
    apart = list(names)
    for words in more:
        several = Counter(name for name, _ in set(zip(apart, words, strict=True)))
        apart = [f"{name}, {word}" if several[name] > 1 else name for name, word in zip(apart, words, strict=True)]
    return apart
