"""What items begin with alike is read once, whatever a model attends to and however its cache keeps it."""

from pathlib import Path

import pytest

from tests.support.items import CONTINUE, SHAPES, build_shape, check_items_as_if_alone


@pytest.mark.parametrize("shape", SHAPES)
def test_items_are_measured_as_if_each_choice_were_read_alone(shape: str, tmp_path: Path) -> None:
    check_items_as_if_alone(build_shape(shape, tmp_path), shape in CONTINUE)
