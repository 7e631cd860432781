"""How answers are shown, as asked for: what goes with which format, and how figures in files look."""

from typing import TYPE_CHECKING, Final

from rbpx.config.options import Format
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.config.request import Request

__all__ = ["LOOKS", "check_shown"]

LOOKS: Final = ("width", "font_size", "font", "legend")
_RANGES: Final = {"width": (1, 40, "inches"), "font_size": (4, 40, "points")}


def check_shown(request: "Request") -> None:
    """Refuse what a format does not have, and looks that nothing can be read in.

    Raises:
        RbpxError: a key is asked for with a format that is without it, or a size is too small or too large.
    """
    form = request.format
    if request.plot and form is not Format.table:
        raise RbpxError(f"plot=true draws for people, format={form.value} is for programs; drop one of them")
    if request.spreadsheet and form not in (Format.csv, Format.table):
        raise RbpxError(f"spreadsheet=true is for csv, not format={form.value}; drop one of them")
    given = {name: getattr(request, name) for name in LOOKS if getattr(request, name) is not None}
    if given and form not in (Format.svg, Format.pdf):
        raise RbpxError(f"{next(iter(given))}= is of figures in files: add --format svg or pdf, or drop it")
    for name, (least, most, what) in _RANGES.items():
        if name in given and not least <= given[name] <= most:
            raise RbpxError(f"{name}={given[name]:g} is not between {least} and {most} {what}; give one that is")
