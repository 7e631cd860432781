"""One page with the laws, figures and tables of a store.

Answers every question that has a section and writes one HTML file that needs no network: a summary in sentences, and
for each family and text the laws and the figures of arXiv 2510.20387 (3 to 9).

Numbers come with intervals, values, SQL and runs. --format md is Markdown, tex tables for a paper, svg, pdf and png a
folder of figures. With more than 12 groups it begins with a table of all; group=NAME asks for one. It overwrites
reports alone.
"""

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import Reported
from rbpx.questions.registry import report_keys

VERB = Verb(
    order=300,
    theme="store",
    examples=(
        "python -m rbpx report",
        "python -m rbpx report dataset=pydoc k='[1,10,100]' --output pydoc.html",
        "python -m rbpx report group=ladder-on-pydoc",
        "python -m rbpx report --format pdf --output figures",
    ),
    keys=Reported,
    more=report_keys(),
)


def perform(asked: Command) -> None:
    """Writes one page for all jobs; refuses an output that cannot be written before fitting anything."""
    from rbpx.report.output import check, write_report

    for request in asked.requests:
        check(request)
    write_report([(request, None) for request in asked.requests], asked.line.narrowing)
