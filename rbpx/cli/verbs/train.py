"""Train a ladder of small models.

Trains every size of a ladder on the Python source of installed packages, all on the same tokens in the same order, and
writes ordinary Hugging Face folders, OUTPUT/SIZE/NAME, and a family's file that lists them. Each size is one training
at a constant rate, from which a short decay branches off at every budget of tokens and gives a finished model. It
states its cost before it starts; a training that was killed continues where it stopped. experiment=ladder is a grid of
seven sizes; its file says how the bundled models were trained.
"""

from rbpx.cli.registry import Job, Verb


def _kind() -> type:
    from rbpx.config.recipe import TrainRequest

    return TrainRequest


VERB = Verb(
    order=370,
    theme="measure",
    examples=(
        "python -m rbpx train size=3k tokens=1m budgets=null checkpoints=null seeds=null",
        "python -m rbpx train text.site=FOLDER output=my_ladder",
    ),
    primary="train",
    needs_store=False,
    kind=_kind,
)


def start(job: Job) -> None:
    """Train the ladder."""
    from rbpx.train.train import train_ladder

    train_ladder(job.request)
