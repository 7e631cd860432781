"""A model larger than one device gives the rows that it gives in one piece, whatever its shape."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checkpoints import ARCHITECTURES
from tests.support.measuring import check_split

# Bytes of the CPU's memory that leave everything, a part, or nothing on disk; the tiny models have 45 to 230 KB.
LIMITS = [(dtype, limit) for dtype, part in (("float32", 100_000), ("bfloat16", 60_000)) for limit in (1, part, 10**9)]


@pytest.mark.parametrize(("dtype", "limit"), LIMITS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_split_model_gives_the_rows_and_the_identity_of_the_whole_one(
    arch: str, dtype: str, limit: int, tiny_checkpoint: Callable[..., Path], tiny_text: list[str], tmp_path: Path
) -> None:
    check_split(tiny_checkpoint(arch), dtype, limit, tiny_text, tmp_path)
