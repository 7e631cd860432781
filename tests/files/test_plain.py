"""What programs are given is JSON: a number that is not finite is missing, wherever it stands in a row."""

import json
import math
from pathlib import Path

from rbpx.config.options import Format
from rbpx.display.records import print_records
from rbpx.files.output import printed_to


def test_no_number_of_a_row_is_infinite_at_any_depth(tmp_path: Path) -> None:
    row = {"y": math.inf, "params": {"ends": [1.0, -math.inf], "of": {"r": math.nan, "n": 3}}, "pair": (math.nan, "a")}
    for format, name in ((Format.json, "rows.json"), (Format.csv, "rows.csv")):
        with printed_to(str(tmp_path / name)):
            print_records([row], format)
        text = (tmp_path / name).read_text()
        assert "inf" not in text.lower()
        assert "nan" not in text.lower()
    (read,) = json.loads((tmp_path / "rows.json").read_text())
    assert read == {"y": None, "params": {"ends": [1.0, None], "of": {"r": None, "n": 3}}, "pair": [None, "a"]}
