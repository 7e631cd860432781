"""The verb `train`: a ladder of small models."""

from rbpx.cli.verb import Job, Verb

VERB = Verb(
    order=370,
    summary="train a ladder of small models",
    help="""\
Trains every size of a ladder on the Python source of installed packages, all on the same tokens in the same
order, and writes ordinary Hugging Face folders. The bundled ladder came from experiment=ladder. A killed
training run continues from its last checkpoint.""",
    examples=(
        "python -m rbpx train size=3k tokens=1_000_000",
        "python -m rbpx train text.site=FOLDER output=my_ladder",
    ),
    primary="train",
    needs_store=False,
)


def start(job: Job) -> None:
    """Train it."""
    from rbpx.train.train import train_ladder

    train_ladder(job.request)
