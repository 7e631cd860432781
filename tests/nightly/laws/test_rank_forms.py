"""How often the interval of a size that is held out holds it, by a form of the rank distribution."""

from tests.support.draws import plausible
from tests.support.rank_ladders import held_out_sizes


def test_the_interval_of_a_held_out_size_holds_it_where_the_form_is_right_alone() -> None:
    """Models scatter about the laws of their parameters; a power law is another form."""
    right, wrong = held_out_sizes(400)
    assert plausible(right, 400)
    assert wrong < right / 2
