"""Reports of other stores than the daily one, in every format, and every figure by its schema."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import altair
import numpy as np
import pytest
from jsonschema import ValidationError

from rbpx.config.request import Request
from rbpx.display.chart.figure import Figure
from rbpx.report.contents import gather
from tests.support.commands import here
from tests.support.reports import FAST, SIZES, TEXTS, read, report, store_of, words_of
from tests.support.synthetic import Truth

BRIEF = ("laws=rbp", "k=1")  # where the laws are not what is looked at


@pytest.fixture(scope="module")
def store(place: Path) -> Path:
    """Five sizes of a family on two texts."""
    return store_of(place.parent / "store")


@pytest.fixture(scope="module")
def text(store: Path, place: Path) -> str:
    """The page of it."""
    return report(store, place.parent / "page.html", place)


def asked(store: Path, place: Path, query: str) -> list[dict[str, Any]]:
    return list(json.loads(here("sql", query, "--store", store, "--format", "json", cwd=place, check=0).stdout))


def counted(store: Path, place: Path, dataset: str, k: int) -> Any:
    """RBP_k of each size, by counting tokens one by one."""
    rows = asked(
        store,
        place,
        f"SELECT r.non_embedding_params AS s, avg((t.greater + t.ties + 1 <= {k})::DOUBLE) AS rbp FROM tokens t "
        f"JOIN runs r USING (run_id) WHERE r.dataset = '{dataset}' GROUP BY s ORDER BY s",
    )
    return np.array([row["rbp"] for row in rows])


# ------------------------------------------------------------------------------------------------- what it says


def test_a_status_that_is_not_good_stands_there_with_its_remedy(text: str) -> None:
    said = words_of(text)
    assert "To be read with care" in said
    assert re.search(r"limit \(\d+, lognormal.*?\): No lognormal fits; the best fit is a power law", said)


def test_every_figure_is_one_by_the_schema_of_vega_lite(store: Path) -> None:
    report = gather([(Request(store=str(store), resamples=20), None)])
    sections = [section for part in report.parts for section in part.sections] + list(report.gaps)
    figures = [figure for section in sections for figure in section.figures if isinstance(figure, Figure)]
    assert len(figures) > 20
    for figure in figures:
        altair.LayerChart.from_dict(figure.spec, validate=True)
    (drawn, *_) = figures
    with pytest.raises(ValidationError):
        altair.LayerChart.from_dict(drawn.spec | {"layer": [{"mark": "no mark"}]}, validate=True)


# ------------------------------------------------------------------------------------------------- other stores


def test_the_report_of_one_run_says_what_a_law_needs(place: Path, tmp_path: Path) -> None:
    store = store_of(tmp_path / "one", texts={"prose": Truth(S=(10_000,))})
    text = report(store, tmp_path / "page.html", place)
    said = words_of(text)
    assert "There is 1 size (10000); a law needs at least 3." in said
    assert re.search(r"10000: RBP1 = 0\.\d{4}, RBP10 = 0\.\d{4}, RBP100 = 0\.\d{4}, cross-entropy \d\.\d{4} nats", said)
    assert said.count("This needs 3 sizes, and there is 1 size") == 1
    assert "No two of the requested texts" in said
    assert set(read(text).figures) >= {
        "drawn-on-prose-fit-rbp",
        "drawn-on-prose-klaw-k",
        "drawn-on-prose-entropy-shares",
    }


def test_many_groups_are_folded_and_listed(place: Path, tmp_path: Path) -> None:
    families = ("ant", "bee", "alpha", "<b>&d")
    store = store_of(tmp_path / "many", families, {"prose": Truth(S=SIZES[:3])}, n=12)
    text = report(store, tmp_path / "page.html", place, *BRIEF)
    assert '<details class="chapter" id="ant-on-prose">' in text
    assert not re.search(r'<details class="chapter"[^>]* open>', text)
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert [f"#{name}-on-prose" in contents for name in ("ant", "bee", "alpha", "b-d")] == [True] * 4
    assert len(read(text).tables["glance"]) == 4
    assert "<b>&d" not in text  # a name is text, whatever it holds
    assert "&lt;b&gt;&amp;d on prose" in text
    assert {row["group"] for row in read(text).tables["glance"]} == {f"{name} on prose" for name in families}


def test_a_report_is_narrowed_as_the_verbs_are_and_says_so(store: Path, place: Path, tmp_path: Path) -> None:
    text = report(store, tmp_path / "page.html", place, "dataset=file", "dataset.name=code", "k=[1,7]", "laws=rbp")
    said = words_of(text)
    assert "narrowed to resamples=40 dataset=file dataset.name=code k=[1,7] laws=rbp" in said
    assert "drawn on code" in said
    assert "prose" not in said
    ks = {row["k"] for row in read(text).tables["drawn-on-code-fit-rbp-values"]}
    assert ks == {"1", "7"}


def test_imported_results_have_figures_where_they_can(place: Path, tmp_path: Path) -> None:
    rows = [f"{s},{s},{k},{np.exp(-3 * s**-0.1 * k**-0.3)}" for s in SIZES for k in (1, 3, 10, 30)]
    (tmp_path / "theirs.csv").write_text("size,S,k,rbp\n" + "\n".join(rows))
    words = ["source=them", "ties=optimistic", "family=theirs", "dataset=prose"]
    here("import", tmp_path / "theirs.csv", *words, "--store", tmp_path / "store", cwd=place, check=0)
    text = report(tmp_path / "store", tmp_path / "page.html", place, "ties=optimistic")
    page, said = read(text), words_of(text)
    (law,) = [row for row in page.tables["theirs-on-prose-them-fit-laws-table"] if row["law|k|method"] == "rbp|3|ols"]
    assert float(law["alpha"]) == pytest.approx(0.1, rel=1e-6)
    assert said.count("This looks at single tokens, and imported results have none.") == 4
    name = "theirs-on-prose-them-fit-rbp"
    kept = {(row["size"], row["k"]): row["rbp"] for row in asked(tmp_path / "store", place, page.figures[name].sql)}
    assert kept[str(SIZES[0]), 10] == pytest.approx(float(np.exp(-3 * SIZES[0] ** -0.1 * 10**-0.3)), rel=1e-6)


@pytest.mark.parametrize("beside_shares", [False, True])
def test_imported_losses_without_a_share_have_a_report_and_no_regimes(
    beside_shares: bool, tmp_path: Path, place: Path
) -> None:
    """The section of a group whose RBP_k is known at no k ended in a traceback, and so did the whole page."""
    losses = tmp_path / "losses.csv"
    rows = [f"{S},{text},{6 * S**-0.1!r}\n" for text in ("c4", "wiki") for S in SIZES]
    losses.write_text("S,dataset,loss_nats\n" + "".join(rows))
    store = store_of(tmp_path / "store", texts={"prose": TEXTS["prose"]}, n=10) if beside_shares else tmp_path / "store"
    here("import", losses, "source=them", "family=toy", "--store", store, cwd=place, check=0)
    page = report(store, tmp_path / "page.html", place, "laws=[rbp,cross_entropy]")
    assert "RBPk is not known at any k of the grid" in words_of(page)
    (row,) = [row for row in read(page).tables["glance"] if row["group"] == "toy on c4 (them)"]
    assert float(row["alpha_ce"]) == pytest.approx(0.1)
    assert row["supported_k"] == ""
    shown = here("regimes", FAST, "--store", store, cwd=place, check=0).stdout
    assert "toy on c4 (them): RBP_k is not known at any k of the grid." in shown
    found = json.loads(here("regimes", FAST, "--store", store, "--format", "json", cwd=place, check=0).stdout)
    assert {row["source"] for row in found} == ({"measured"} if beside_shares else set())


# ------------------------------------------------------------------------------------------------- where it goes


def refused(place: Path, *words: Any) -> str:
    answer = here("report", *words, cwd=place, check=2)
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--output", "@", "--format", "html"], "is a folder"),
        (["--store", "@/nosuch"], r"store=\S+nosuch does not exist"),
    ],
)
def test_a_wrong_request_is_one_line(words: list[str], says: str, store: Path, place: Path, tmp_path: Path) -> None:
    given = [word.replace("@", str(tmp_path)) for word in words]
    own = [] if "--store" in given else ["--store", store]
    output = [] if "--output" in given else ["--output", tmp_path / "page.html"]
    assert re.search(says, refused(place, *given, *own, *output))
    assert not list(tmp_path.iterdir())


def test_the_formats_of_a_report_are_those_of_questions_and_of_no_other_verbs(store: Path, place: Path) -> None:
    answer = here("status", "--format", "html", "--store", store, cwd=place, check=2)
    assert "format=html is of questions and the report: python -m rbpx report --format html" in answer.stderr
    page = here("fit", "laws=[rbp]", FAST, "--format", "html", "--store", store, cwd=place, check=0).stdout
    assert page.lstrip().startswith("<!doctype html>")


# ------------------------------------------------------------------------------------------------- for a paper


@pytest.fixture(scope="module")
def small(place: Path) -> Path:
    """Three sizes on one text."""
    return store_of(place.parent / "small", texts={"prose": Truth(S=SIZES[:3])}, n=12)


def slope_of(store: Path, place: Path, k: int) -> float:
    return float(np.polyfit(np.log(SIZES[:3]), np.log(-np.log(counted(store, place, "prose", k))), 1)[0])


def test_latex_has_the_tables_of_the_paper(small: Path, place: Path, tmp_path: Path) -> None:
    text = report(small, tmp_path / "tables.tex", place, "laws=[rbp,cross_entropy]")
    assert text.startswith("% rbpx report")
    table = text[text.index(r"\label{tab:table2}") :].split(r"\end{table}")[0]
    assert r"\multicolumn{2}{c}{drawn}" in table
    rows = dict(re.findall(r"k = (\d+) & [\d.]+ & \$-\$([\d.]+) \\\\", table))
    for k in (1, 10, 100):
        assert -float(rows[str(k)]) == pytest.approx(slope_of(small, place, k), abs=6e-4)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    for line in text.splitlines():
        bare = line.replace(r"\%", "").split("%")[0]
        assert bare.count("{") == bare.count("}"), line
        assert bare.count("$") % 2 == 0, line


def test_markdown_has_the_sentences_and_the_tables(small: Path, place: Path, tmp_path: Path) -> None:
    text = report(small, tmp_path / "report.md", place, *BRIEF[:1], "k=[1,10]")
    (line,) = [line for line in text.splitlines() if line.startswith("| prose | k = 10 |")]
    assert float(line.split("|")[4].replace("−", "-")) == pytest.approx(slope_of(small, place, 10), abs=6e-4)
    assert re.search(r"At ten times the size −ln RBP\\_1 is \d+ ?% lower", text)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({row.replace(r"\|", "").count("|") for row in block.splitlines()}) == 1, block


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_figures_as_files_are_vectors_with_their_fonts(form: str, small: Path, place: Path, tmp_path: Path) -> None:
    here("report", FAST, *BRIEF, "--store", small, "--format", form, "--output", tmp_path / "out", cwd=place, check=0)
    files = sorted((tmp_path / "out").glob(f"*.{form}"))
    assert {"drawn-on-prose-fit-rbp", "drawn-on-prose-fit-residuals"} <= {path.stem for path in files}
    listed = (tmp_path / "out" / "figures.md").read_text()
    assert len(files) == 10  # one of which says when tokens are learned
    assert sum("learning" in path.stem for path in files) == 1
    assert all(f"({path.name})" in listed for path in files)
    assert "not drawn. It needs four sizes" in listed
    for path in files:
        if form == "svg":
            tags = {element.tag.split("}")[1] for element in ET.parse(path).iter()}
            assert "image" not in tags
            assert {"path", "text"} <= tags
    if form == "pdf":
        if shutil.which("pdffonts") is None:
            pytest.skip("poppler's pdffonts is not here to look for the fonts of a PDF")
        for path in files:
            fonts = subprocess.run(["pdffonts", path], capture_output=True, text=True, check=True).stdout.splitlines()[
                2:
            ]
            assert fonts
            assert all(line.split()[-5] == "yes" for line in fonts), fonts  # emb
