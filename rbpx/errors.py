"""What goes wrong for a user, as one line: what, with its value, where, and what to do next."""


class RbpxError(Exception):
    """A request that cannot be met; the command line prints it as one line and exits 2."""


class MeasureError(RbpxError):
    """A measurement that failed while running; kept in `failures`, and the command exits 1."""


class DamageError(MeasureError):
    """A file of the store that failed while it was read; looked at again, it is found and left out."""
