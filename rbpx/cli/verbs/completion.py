"""The verb `completion`: what a shell evaluates to complete `rbpx`."""

from rbpx.cli.verb import Job, Verb
from rbpx.errors import RbpxError

VERB = Verb(
    order=380,
    theme="store",
    summary="print the shell completion script of `rbpx`",
    help="""\
Prints a script for bash or zsh that completes verbs, keys, names of models, texts and studies, and flags of the
console script `rbpx`. `python -m rbpx` cannot be completed, since the shell then completes for Python. For bash
put eval "$(rbpx completion bash)" into ~/.bashrc, for zsh eval "$(rbpx completion zsh)" into ~/.zshrc.""",
    examples=("python -m rbpx completion bash",),
    takes_words=True,
    needs_store=False,
)


def start(job: Job) -> None:
    """Print the script."""
    from rbpx.cli.completion import script

    if len(job.words) != 1:
        raise RbpxError(f"completion takes one shell, got {len(job.words)}: rbpx completion bash")
    print(script(job.words[0]))
