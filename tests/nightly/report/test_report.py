"""The report of a store: what it says is what was counted and fitted, and it overwrites nothing of anybody's."""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import altair
import numpy as np
import pytest
from jsonschema import ValidationError

from rbpx.config.request import Request
from rbpx.display.chart.colours import DASHES, GROUNDS, INKS, MOST_SERIES, SERIES, SHAPES
from rbpx.display.chart.figure import Figure
from rbpx.report.contents import gather
from tests.support.commands import here, start
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


@pytest.mark.parametrize("dataset", ["prose", "code"])
def test_the_summary_says_the_slope_of_the_line_through_counted_shares(
    dataset: str, text: str, store: Path, place: Path
) -> None:
    ln_y = np.log(-np.log(counted(store, place, dataset, 1)))
    alpha = -np.polyfit(np.log(SIZES), ln_y, 1)[0]
    r2 = np.corrcoef(np.log(SIZES), ln_y)[0, 1] ** 2
    said = words_of(text)[words_of(text).index(f"drawn on {dataset} 5 sizes") :]
    found = re.search(r"−ln RBP1 falls as S−α with α = ([\d.]+) \(95 %: ([\d.]+) to ([\d.]+)\), R² = ([\d.]+)", said)
    assert found is not None
    assert float(found[1]) == pytest.approx(alpha, abs=6e-4)
    assert float(found[4]) == pytest.approx(r2, abs=6e-4)
    assert float(found[2]) < alpha < float(found[3])


def test_the_backtest_of_the_summary_is_that_of_a_line_through_the_smaller_sizes(
    text: str, store: Path, place: Path
) -> None:
    y = -np.log(counted(store, place, "prose", 1))
    slope, level = np.polyfit(np.log(SIZES[:-1]), np.log(y[:-1]), 1)
    error = np.exp(level + slope * np.log(SIZES[-1])) / y[-1] - 1
    said = words_of(text)[words_of(text).index("drawn on prose 5 sizes") :]
    found = re.search(r"the laws predict its −ln RBP1 within ([\d.]+)%", said)
    assert found is not None
    assert float(found[1]) == pytest.approx(100 * abs(error), abs=0.06)


def test_the_page_says_what_it_is_of(text: str, store: Path) -> None:
    said = words_of(text)
    for words in ("Scaling laws of drawn on code and prose", "10 runs", "15,000 scored tokens", str(store), "UTC"):
        assert words in said, words
    run_ids = {row["run_id"] for row in read(text).tables["runs-table"]}
    assert run_ids == {path.name for path in (store / "runs").iterdir()}


def test_the_table_of_laws_holds_what_fit_keeps(text: str, store: Path, place: Path) -> None:
    rows = {
        (row["law"], row["k"]): row
        for row in json.loads(here("fit", FAST, "--store", store, "--format", "json", cwd=place, check=0).stdout)
        if row["dataset"] == "prose"
    }
    table = read(text).tables["drawn-on-prose-fit-laws-table"]
    assert len(table) == len(rows) == 12
    for k in (1, 10, 100):
        (row,) = [row for row in table if row["law|k|method"] == f"rbp|{k}|ols"]
        kept = rows["rbp", k]
        assert float(row["alpha"]) == pytest.approx(kept["alpha"], rel=1e-6)
        lo, hi = map(float, row["alpha_lo|alpha_hi"].split("|"))
        assert (lo, hi) == pytest.approx((kept["alpha_lo"], kept["alpha_hi"]), rel=1e-6)


def test_a_status_that_is_not_good_stands_there_with_its_remedy(text: str) -> None:
    said = words_of(text)
    assert "To be read with care" in said
    assert re.search(r"limit \(\d+, lognormal.*?\): No lognormal fits; the best fit is a power law", said)


# ------------------------------------------------------------------------------------------------- its figures


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


def test_every_figure_has_a_name_values_a_question_and_runs(text: str, store: Path) -> None:
    page = read(text)
    assert len(page.figures) > 25
    for name, figure in page.figures.items():
        assert len(figure.says) > 30, name
        assert len(page.tables[f"{name}-values"]) > 1, name
        assert figure.sql.startswith(("SELECT", "WITH")), name
        assert figure.spec["layer"], name
    assert text.count('Runs: <span class="runs">') == len(page.figures)


SHARES = {"drawn-on-prose-fit-rbp": "neg_ln_rbp", "drawn-on-prose-klaw-k": "neg_ln_rbp"}


@pytest.mark.parametrize("name", SHARES)
def test_the_sql_of_a_figure_of_shares_gives_its_values(name: str, text: str, store: Path, place: Path) -> None:
    figure, values = read(text).figures[name], read(text).tables[f"{name}-values"]
    rows = {(row["size"], row["k"]): row["neg_ln_rbp"] for row in asked(store, place, figure.sql)}
    assert len(values) > 10
    for row in values:
        assert float(row["neg_ln_rbp"]) == pytest.approx(
            rows[row.get("size") or row["series"], int(row["k"].replace(",", ""))], rel=1e-6
        )


def test_the_sql_of_a_figure_of_windows_gives_its_values(text: str, store: Path, place: Path) -> None:
    name = "drawn-on-prose-emergence-k10"
    figure, values = read(text).figures[name], read(text).tables[f"{name}-values"]
    rows = {(row["run_id"], row["n"]): row["p"] for row in asked(store, place, figure.sql)}
    seen = [row for row in values if row["p"]]
    assert len(seen) >= 10
    for row in seen:
        run_id = f"prose{int(row['size']):014d}"
        n = int(row["windows|n"].split("|")[1])
        if (run_id, n) in rows:  # no document has a window of more tokens than it has
            assert float(row["p"]) == pytest.approx(rows[run_id, n], rel=1e-6)
    assert len(rows) >= 10


def test_the_ranks_that_are_drawn_are_those_of_the_tokens(text: str, store: Path, place: Path) -> None:
    name = "drawn-on-prose-ranks-distribution"
    figure, values = read(text).figures[name], read(text).tables[f"{name}-values"]
    rows = asked(store, place, figure.sql)
    assert len(rows) == len(values)
    query = f"SELECT greater + ties + 1 AS rank FROM tokens WHERE run_id = 'prose{SIZES[0]:014d}'"
    ranks = np.array([row["rank"] for row in asked(store, place, query)])
    mine = [row for row in values if row["size"] == str(SIZES[0])]
    assert sum(int(row["n_tokens"].replace(",", "")) for row in mine) == len(ranks)
    for row in mine:
        first, last = (int(row[name].replace(",", "")) for name in ("first_rank", "last_rank"))
        n = int(((ranks >= first) & (ranks <= last)).sum())
        assert int(row["n_tokens"].replace(",", "")) == n
        assert float(row["share_per_rank"]) == pytest.approx(n / len(ranks) / (last - first + 1), rel=1e-6)


def test_the_sql_of_a_figure_of_laws_gives_its_exponents(text: str, store: Path, place: Path) -> None:
    name = "drawn-on-code-regimes-alpha"
    figure, values = read(text).figures[name], read(text).tables[f"{name}-values"]
    rows = {row["k"]: row["alpha"] for row in asked(store, place, figure.sql)}
    assert len(values) > 10
    for row in values:
        assert float(row["alpha"]) == pytest.approx(rows[int(row["k"].replace(",", ""))], rel=1e-6)


def test_curves_are_the_laws_and_points_are_the_measured_values(text: str) -> None:
    page = read(text)
    spec = page.figures["drawn-on-prose-fit-rbp"].spec
    data = spec["layer"][1]["data"]
    written = data["values"] if "values" in data else spec["datasets"][data["name"]]
    lines = [row.split(",") for row in written.splitlines()]
    laws = {row["law|k|method"]: row for row in page.tables["drawn-on-prose-fit-laws-table"]}
    at = {name: lines[0].index(name) for name in ("k", "non_embedding_params", "neg_ln_rbp", "lo", "hi")}
    assert len(lines) > 70
    for line in lines[1:]:
        law = laws[f"rbp|{line[at['k']]}|ols"]
        expected = float(law["C"]) * float(line[at["non_embedding_params"]]) ** -float(law["alpha"])
        assert float(line[at["neg_ln_rbp"]]) == pytest.approx(expected, rel=2e-4)
        assert float(line[at["lo"]]) < expected < float(line[at["hi"]])


# ------------------------------------------------------------------------------------------------- other stores


def test_a_telling_document_of_each_text_stands_there_in_the_colours_of_its_ranks(
    text: str, store: Path, place: Path
) -> None:
    passages = text.split('<div class="passage"')[1:]
    assert len(passages) == 2
    for dataset, passage in zip(("prose", "code"), sorted(passages, key=lambda each: "code" in each[:80]), strict=True):
        doc_id = int(re.search(rf'id="[^"]*{dataset}-(\d+)"', passage)[1])
        nats = asked(
            store,
            place,
            "SELECT doc_id, avg(logprob::DOUBLE) FILTER (S = large) - avg(logprob::DOUBLE) FILTER (S = small) AS gain "
            "FROM (SELECT doc_id, logprob, non_embedding_params AS S, min(S) OVER () AS small, max(S) OVER () AS large "
            f"FROM tokens JOIN runs USING (run_id) WHERE dataset = '{dataset}') GROUP BY doc_id ORDER BY gain DESC",
        )
        assert doc_id == nats[0]["doc_id"]
        assert f"doc={doc_id} --format html" in passage
        for of_model, pick in zip(passage.split('<div class="tokens"')[1:], ("min", "max"), strict=True):
            ranks = asked(
                store,
                place,
                f"SELECT greater + ties + 1 AS rank FROM tokens JOIN runs USING (run_id) WHERE doc_id = {doc_id} AND "
                f"dataset = '{dataset}' AND size = (SELECT arg_{pick}(size, non_embedding_params) FROM runs) "
                "ORDER BY position LIMIT 240",
            )
            shown = re.findall(r'<span(?: class="g(\d)")? title="rank ([\d,]+),', of_model)
            expected = [(str(sum(row["rank"] > end for end in (1, 10, 100)) or ""), row["rank"]) for row in ranks]
            assert [(grade, int(rank.replace(",", ""))) for grade, rank in shown] == expected


def test_the_report_of_an_empty_store_says_how_to_fill_it(place: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for _ in range(2):  # a report takes the place of one
        text = report(tmp_path / "empty", tmp_path / "page.html", place)
    assert "This store holds no runs yet" in words_of(text)
    assert "python -m rbpx -m model=ladder dataset=pydoc,stdlib" in words_of(text)
    assert len(text) < 50_000  # nothing is there to draw, so nothing that draws


def test_the_report_of_one_run_says_what_a_law_needs(place: Path, tmp_path: Path) -> None:
    store = store_of(tmp_path / "one", texts={"prose": Truth(S=(10_000,))})
    text = report(store, tmp_path / "page.html", place)
    said = words_of(text)
    assert "There is 1 size (10000); a law needs at least 3." in said
    assert re.search(r"10000: RBP1 = 0\.\d{4}, RBP10 = 0\.\d{4}, RBP100 = 0\.\d{4}, cross-entropy \d\.\d{4} nats", said)
    assert said.count("Not drawn. This needs 3 sizes, and there is 1 size") == 3
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
    assert re.search(r'<details class="chapter" id="prose-text">', text)
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
    shown = here("regimes", FAST, "--plot", "--store", store, cwd=place, check=0).stdout
    assert "toy on c4 (them): RBP_k is not known at any k of the grid." in shown
    found = json.loads(here("regimes", FAST, "--store", store, "--format", "json", cwd=place, check=0).stdout)
    assert {row["source"] for row in found} == ({"measured"} if beside_shares else set())


# ------------------------------------------------------------------------------------------------- where it goes


def test_without_an_output_it_is_report_html_here_and_nothing_else(place: Path, tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "empty").mkdir()
    process = start("report", "--store", tmp_path / "empty", cwd=tmp_path / "cwd")
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout) == (0, "")
    assert "report of 0 runs written to report.html" in stderr
    assert [path.name for path in (tmp_path / "cwd").iterdir()] == ["report.html"]


def test_a_pipe_is_written_to_and_stays_one(place: Path, tmp_path: Path) -> None:
    """Also a device: a report to /dev/null once took its place, where its user may do that."""
    pipe, empty = tmp_path / "pipe.html", tmp_path / "empty"
    os.mkfifo(pipe)
    empty.mkdir()
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(pipe.read_text)
        here("report", "--store", empty, "--output", pipe, cwd=place, check=0)
        assert "<!doctype html>" in reading.result(timeout=60)
    assert pipe.is_fifo()


def refused(place: Path, *words: Any) -> str:
    answer = here("report", *words, cwd=place, check=2)
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    return line


def test_what_is_no_report_is_not_overwritten(store: Path, place: Path, tmp_path: Path) -> None:
    notes, folder = tmp_path / "notes.html", tmp_path / "photos"
    notes.write_text("<p>Mine.</p>")
    folder.mkdir()
    (folder / "me.svg").write_text("<svg/>")
    line = refused(place, "--store", store, "--output", notes)
    assert "notes.html exists and is not a report; name another file with --output FILE" in line
    assert notes.read_text() == "<p>Mine.</p>"
    line = refused(place, "--store", store, "--output", folder, "--format", "svg")
    assert "photos exists and holds no report; name another folder" in line
    assert [path.name for path in folder.iterdir()] == ["me.svg"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--output", "@/nosuch/page.html"], "is in a folder that does not exist"),
        (["--output", "@", "--format", "html"], "is a folder"),
        (["--format", "csv"], r"format=csv is not a format of a report; .* html, md, tex, svg, pdf"),
        (["--store", "@/nosuch"], r"store=\S+nosuch does not exist"),
        (["dataset=pydoc"], r"dataset=pydoc is not in the store; it holds code, prose"),
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
    assert "−ln RBP\\_1 falls as S^−α with α = " in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({row.replace(r"\|", "").count("|") for row in block.splitlines()}) == 1, block


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_figures_as_files_are_vectors_with_their_fonts(form: str, small: Path, place: Path, tmp_path: Path) -> None:
    here("report", FAST, *BRIEF, "--store", small, "--format", form, "--output", tmp_path / "out", cwd=place, check=0)
    files = sorted((tmp_path / "out").glob(f"*.{form}"))
    assert {"drawn-on-prose-fit-rbp", "drawn-on-prose-fit-residuals"} <= {path.stem for path in files}
    listed = (tmp_path / "out" / "figures.md").read_text()
    assert len(files) == 11  # 2 of which say when tokens are learned
    assert sum("learning" in path.stem for path in files) == 2
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


# ------------------------------------------------------------------------------------------------- colours


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_colour_stands_out_from_its_ground(theme: str) -> None:
    assert contrast(INKS[theme], GROUNDS[theme]) >= 7
    for colour in SERIES[theme]:
        assert contrast(colour, GROUNDS[theme]) >= 3, colour


def test_each_series_has_a_colour_a_shape_and_a_dash_of_its_own() -> None:
    for values in (*SERIES.values(), SHAPES, DASHES):
        assert len(set(values)) == len(values) >= MOST_SERIES
