"""The report of a store: what it says is what was counted and fitted, it is drawn, and it overwrites nothing."""

import base64
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import vl_convert

import rbpx
from rbpx.display.chart.colours import GROUNDS, INKS, SERIES, STEPS
from rbpx.display.chart.figure import Chart, Origin, Scale, drawn, points
from rbpx.display.table import SIZE, Column, Table
from rbpx.display.vocabulary import size_name
from rbpx.report.contents import Report, gather
from rbpx.report.page import page as page_of
from rbpx.report.pictures import Look
from rbpx.report.texts import latex, markdown
from rbpx.spelling import speaking_shell
from rbpx.store.sql import connected_once
from tests.support.asking import imported as other_people
from tests.support.asking import request
from tests.support.browser import Visit
from tests.support.composed import here
from tests.support.reports import FAST, SIZES, read, store_of, words_of

ASKED = {"k": [1, 10, 100], "laws": ["rbp", "cross_entropy"], "n": [1, 5], "resamples": 40}
NARROWED = "dataset=[code,prose] k=[1,10,100]"
TRAINED = [(S, D, 1.7 + 400 * S**-0.34 + 400 * D**-0.28) for S in SIZES[1:] for D in (1e8, 1e9, 1e10)]

LONG = "x" * 10_000

NOWHERE = Origin("", ())


@pytest.fixture(scope="module")
def store(place: Path) -> Path:
    """Four sizes of a family on two texts."""
    return store_of(place.parent / "store", n=12)


@pytest.fixture(scope="module")
def of_runs(store: Path) -> Report:
    """The report of it, as the verb makes it."""
    with connected_once(), speaking_shell():
        return gather([(request(store, **ASKED), None)], NARROWED)


@pytest.fixture(scope="module")
def text(of_runs: Report, place: Path) -> str:
    """The page of it."""
    with speaking_shell():
        (place.parent / "page.html").write_text(text := page_of(of_runs))
    return text


def of_table(store: Path, head: str, rows: list[str]) -> Report:
    """The report of results of other people, who have a line for each run."""
    store = other_people(store, "\n".join([head, *rows]))
    with connected_once():
        return gather([(request(store, resamples=40), None)])


@pytest.fixture(scope="module")
def of_losses(place: Path) -> Report:
    """The report of losses of other people, of models by size and tokens, and of a variant of a long name by size."""
    rows = [f"{S},{D},,m{at},c4,{loss!r}" for at, (S, D, loss) in enumerate(TRAINED)]
    rows += [f"{S},,{LONG},o{at},c4,{1.7 + 400 * S**-0.34!r}" for at, S in enumerate(SIZES[1:])]
    return of_table(place.parent / "theirs", "S,D,variant,model,dataset,loss_nats", rows)


@pytest.fixture(scope="module")
def imported(of_losses: Report) -> str:
    """The page of it."""
    return page_of(of_losses)


def asked(store: Path, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rbpx.open(store).sql(query).to_pylist()
    return found


def counted(store: Path, dataset: str, k: int) -> Any:
    """RBP_k of each size, by counting tokens one by one."""
    rows = asked(
        store,
        f"SELECT r.non_embedding_params AS s, avg((t.greater + t.ties + 1 <= {k})::DOUBLE) AS rbp FROM tokens t "
        f"JOIN runs r USING (run_id) WHERE r.dataset = '{dataset}' GROUP BY s ORDER BY s",
    )
    return np.array([row["rbp"] for row in rows])


# ------------------------------------------------------------------------------------------------- what it says


def test_the_summary_says_the_slope_of_the_line_through_counted_shares(text: str, store: Path) -> None:
    for dataset in ("prose", "code"):
        ln_y = np.log(-np.log(counted(store, dataset, 1)))
        alpha = -np.polyfit(np.log(SIZES[:4]), ln_y, 1)[0]
        r2 = np.corrcoef(np.log(SIZES[:4]), ln_y)[0, 1] ** 2
        said = words_of(text)[words_of(text).index(f"drawn on {dataset} 4 sizes") :]
        found = re.search(r"α of −ln RBP1(\d\.\d{3})95 %: (-?[\d.]+) to ([\d.]+) R² (\d\.\d{3})", said)
        assert float(found[1]) == pytest.approx(alpha, abs=6e-4)
        assert f"−ln RBP1 is {1 - 10**-alpha:.0%} lower" in said
        assert float(found[4]) == pytest.approx(r2, abs=6e-4)
        assert float(found[2]) < alpha < float(found[3])


def test_the_backtest_of_the_summary_is_that_of_a_line_through_the_smaller_sizes(text: str, store: Path) -> None:
    y = -np.log(counted(store, "prose", 1))
    slope, level = np.polyfit(np.log(SIZES[:3]), np.log(y[:-1]), 1)
    error = np.exp(level + slope * np.log(SIZES[3])) / y[-1] - 1
    said = words_of(text)[words_of(text).index("drawn on prose 4 sizes") :]
    found = re.search(r"error of the prediction([+−-][\d.]+)%", said)
    assert float(found[1].replace("−", "-")) == pytest.approx(100 * error, abs=0.06)


def test_the_page_says_what_it_is_of_and_what_is_to_be_read_with_care(text: str, store: Path) -> None:
    said = words_of(text)
    for words in (
        "Scaling laws of drawn on code and prose",
        "8 runs",
        "4,800 scored tokens",
        str(store),
        "UTC",
        NARROWED,
    ):
        assert words in said, words
    assert "To be read with care" in said
    run_ids = {row["run_id"] for row in read(text).tables["runs-table"]}
    assert run_ids == {path.name for path in (store / "runs").glob("[!_]*")}


def test_latex_and_markdown_have_the_slopes_of_counted_shares_in_tables_that_are_whole(
    of_runs: Report, store: Path
) -> None:
    tex, words = latex(of_runs), markdown(of_runs)
    table = tex[tex.index(r"\label{tab:table2}") :].split(r"\end{table}")[0]
    assert r"\multicolumn{2}{c}{drawn}" in table
    slopes = [np.polyfit(np.log(SIZES[:4]), np.log(-np.log(counted(store, "prose", k))), 1)[0] for k in ASKED["k"]]
    for k, slope in zip(ASKED["k"], slopes, strict=True):
        (line,) = [line for line in words.splitlines() if line.startswith(f"| prose | k = {k} |")]
        assert float(line.split("|")[4].replace("−", "-")) == pytest.approx(slope, abs=6e-4)
        assert f"$-${-slope:.3f}" in table
    for line in tex.splitlines():
        bare = line.replace(r"\%", "").replace(r"\$", "").split("%")[0]
        assert (bare.count("{"), bare.count("$") % 2) == (bare.count("}"), 0), line
    for block in re.findall(r"(?:^\|.*\n)+", words, re.M):
        assert len({row.replace(r"\|", "").count("|") for row in block.splitlines()}) == 1, block


# ------------------------------------------------------------------------------------------------- its figures


def test_every_figure_has_a_name_values_a_question_and_runs(text: str) -> None:
    page = read(text)
    assert len(page.figures) > 25
    for name, figure in page.figures.items():
        assert len(figure.says) > 30, name
        assert len(page.tables[f"{name}-values"]) > 1, name
        assert figure.sql.startswith(("SELECT", "WITH")), name
        assert figure.spec["layer"], name
    assert text.count('Runs: <span class="runs">') == len(page.figures)


def test_the_sql_of_figures_gives_their_values(text: str, store: Path) -> None:
    page = read(text)
    for name, y in (("drawn-on-prose-fit-laws", "y"), ("drawn-on-prose-klaw-k", "neg_ln_rbp")):
        figure, values = page.figures[name], page.tables[f"{name}-values"]
        rows = asked(store, figure.sql)
        shares = {(size_name(row["size"]), str(row["k"])): row["neg_ln_rbp"] for row in rows}
        shares |= {(size_name(row["size"]), "cross-entropy"): row["cross_entropy_nats"] for row in rows}
        assert len(values) >= 8, name
        for row in values:
            law, k = re.match(r"(?:−ln RBP_)?([^ ]+)", row["series"])[1], row.get("k", "").replace(",", "")
            of = (row["size"], law) if "size" in row else (law, k)
            assert float(row[y]) == pytest.approx(shares[of], rel=1e-6)
    name = "drawn-on-prose-emergence-k10"
    windows = {(row["run_id"], row["n"]): row["p"] for row in asked(store, page.figures[name].sql)}
    seen = [row for row in page.tables[f"{name}-values"] if row["p"]]
    assert len(seen) >= 8
    for row in seen:
        of_run = f"prose{int(row['size']):014d}", int(row["windows|n"].split("|")[1])
        assert float(row["p"]) == pytest.approx(windows[of_run], rel=1e-6)
    name = "drawn-on-code-regimes-alpha"
    alphas = {row["k"]: row["alpha"] for row in asked(store, page.figures[name].sql)}
    values = page.tables[f"{name}-values"]
    assert len(values) == 3
    for row in values:
        assert float(row["alpha"]) == pytest.approx(alphas[int(row["k"].replace(",", ""))], rel=1e-6)


def test_the_ranks_that_are_drawn_are_those_of_the_tokens(text: str, store: Path) -> None:
    name = "drawn-on-prose-ranks-distribution"
    figure, values = read(text).figures[name], read(text).tables[f"{name}-values"]
    rows = asked(store, figure.sql)
    assert len(rows) == len(values)
    query = f"SELECT greater + ties + 1 AS rank FROM tokens WHERE run_id = 'prose{SIZES[0]:014d}'"
    ranks = np.array([row["rank"] for row in asked(store, query)])
    mine = [row for row in values if row["size"] == str(SIZES[0])]
    assert sum(int(row["n_tokens"].replace(",", "")) for row in mine) == len(ranks)
    for row in mine:
        first, last = (int(row[name].replace(",", "")) for name in ("first_rank", "last_rank"))
        n = int(((ranks >= first) & (ranks <= last)).sum())
        assert int(row["n_tokens"].replace(",", "")) == n
        assert float(row["share_per_rank"]) == pytest.approx(n / len(ranks) / (last - first + 1), rel=1e-6)


def test_curves_are_the_laws_and_points_are_the_measured_values(text: str) -> None:
    page = read(text)
    spec = page.figures["drawn-on-prose-fit-laws"].spec
    data = spec["layer"][1]["data"]
    written = data["values"] if "values" in data else spec["datasets"][data["name"]]
    lines = [row.split(",") for row in written.splitlines()]
    laws = {row["law|k|method"]: row for row in page.tables["drawn-on-prose-fit-laws-table"]}
    at = {name: lines[0].index(name) for name in ("series", "non_embedding_params", "y", "lo", "hi")}
    assert len(lines) > 20
    for line in lines[1:]:
        k = re.match(r"−ln RBP_(\d+) ", line[at["series"]])
        law = laws["cross_entropy||ols" if k is None else f"rbp|{k[1]}|ols"]
        assert f"α {float(law['alpha']):.3f}; R² {float(law['r2']):.3f}" in line[at["series"]]
        expected = float(law["C"]) * float(line[at["non_embedding_params"]]) ** -float(law["alpha"])
        assert float(line[at["y"]]) == pytest.approx(expected, rel=2e-4)
        assert float(line[at["lo"]]) < expected < float(line[at["hi"]])


def test_a_telling_document_of_each_text_stands_there_in_the_colours_of_its_ranks(text: str, store: Path) -> None:
    passages = text.split('<div class="passage"')[1:]
    assert len(passages) == 2
    for dataset, passage in zip(("prose", "code"), sorted(passages, key=lambda each: "code" in each[:80]), strict=True):
        doc_id = int(re.search(rf'id="[^"]*{dataset}-(\d+)"', passage)[1])
        nats = asked(
            store,
            "SELECT doc_id, avg(logprob::DOUBLE) FILTER (S = large) - avg(logprob::DOUBLE) FILTER (S = small) AS gain "
            "FROM (SELECT doc_id, logprob, non_embedding_params AS S, min(S) OVER () AS small, max(S) OVER () AS large "
            f"FROM tokens JOIN runs USING (run_id) WHERE dataset = '{dataset}') GROUP BY doc_id ORDER BY gain DESC",
        )
        assert doc_id == nats[0]["doc_id"]
        assert f"doc={doc_id} format=html" in passage
        for of_model, pick in zip(passage.split('<div class="tokens"')[1:], ("min", "max"), strict=True):
            ranks = asked(
                store,
                f"SELECT greater + ties + 1 AS rank FROM tokens JOIN runs USING (run_id) WHERE doc_id = {doc_id} AND "
                f"dataset = '{dataset}' AND size = (SELECT arg_{pick}(size, non_embedding_params) FROM runs) "
                "ORDER BY position LIMIT 240",
            )
            shown = re.findall(r'<span(?: class="g(\d)")? title="rank ([\d,]+),', of_model)
            expected = [(str(sum(row["rank"] > end for end in (1, 10, 100)) or ""), row["rank"]) for row in ranks]
            assert [(grade, int(rank.replace(",", ""))) for grade, rank in shown] == expected


def test_points_name_their_size_as_tables_do_and_shares_begin_at_0() -> None:
    """Without room for marks below 0 a share of 0 would stand above a negative tick."""
    rows = [{"size": size, "S": S, "y": y} for size, S, y in (("1500000000", 1.5e9, 0.0), ("9m", 9e6, 1.0))]
    values = Table("v", (SIZE, Column("S", "S", ","), Column("y", "y", ".4f"))).of("V", rows)
    spec = drawn(values, Chart(Scale("S", "S"), Scale("y", "share", least=0.0), (points(),)), "", "", NOWHERE).spec
    assert [row.split(",")[0] for row in spec["layer"][0]["data"]["values"].splitlines()[1:]] == ["1.5B", "9m"]
    shown = vl_convert.vegalite_to_svg({"$schema": "https://vega.github.io/schema/vega-lite/v6.json", **spec})
    assert not re.findall(r">[\u2212-][\d.]+<", shown)


def test_figures_in_files_are_as_wide_as_asked_and_have_the_index_of_rbp_in_any_font() -> None:
    values = Table("v", (Column("S", "S", ","), Column("−ln RBP_10", "y", ".4f"))).of("V", [{"S": 1, "y": 2}])
    chart = Chart(Scale("S", "S"), Scale("y", "−ln RBP_10"), (points(),))
    figure, look = drawn(values, chart, "", "", NOWHERE), Look(width=3.3)
    svg, pdf, png = (look.rendered(figure, form) for form in ("svg", "pdf", "png"))
    assert "".join(ElementTree.fromstring(svg).itertext()).count("−ln RBP10") == 1
    assert float(re.search(rb"/MediaBox \[0 0 ([\d.]+)", pdf)[1]) == pytest.approx(3.3 * 72, abs=1)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20], "big") == pytest.approx(3.3 * 300, abs=5)


# ------------------------------------------------------------------------------------------------- in a browser


def test_a_page_of_measured_runs_is_drawn_without_a_complaint_or_a_request(
    browser: Any, text: str, place: Path
) -> None:
    """On a phone."""
    visit = Visit(browser, place.parent / "page.html", 390)
    page = visit.all_drawn()
    plots = page.locator(".plot").count()
    assert plots == len(read(text).figures)
    assert page.locator(".plot > svg, .plot > * > svg").count() == plots
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("[...document.querySelectorAll('.plot svg')].filter(s => s.clientWidth > 390).length") == 0
    assert visit.complaints == []
    assert visit.wide_tables() == []
    assert [url for url in visit.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    visit.context.close()


def test_the_table_of_laws_has_the_columns_of_a_terminal_and_is_whole_on_a_screen_and_on_a_phone(
    browser: Any, text: str, store: Path, place: Path
) -> None:
    printed = here("fit", FAST, "dataset=prose", "--store", store, cwd=place, env={"COLUMNS": "100"}).stdout
    (heads,) = [line for line in printed.splitlines() if line.startswith(" law ")]
    table = ".sheet:has(#drawn-on-prose-fit-laws-table)"
    for width in (1280, 390):
        visit = Visit(browser, place.parent / "page.html", width)
        page = visit.all_drawn()
        shown = page.locator(f"{table} thead th:not([hidden])").all_text_contents()
        assert shown == re.split(r"\s{2,}", heads.strip().replace("alpha", "α").replace("R2", "R²"))
        place_of = page.locator(f"{table} .scroll")
        assert place_of.evaluate("of => [of.scrollHeight - of.clientHeight, of.scrollWidth - of.clientWidth]") == [0, 0]
        assert place_of.evaluate("of => of.classList.contains('stacked')") is (width == 390)
        labels = page.locator(f"{table} tbody tr").first.locator("td").evaluate_all("of => of.map(td => td.dataset.h)")
        assert width == 1280 or len({*labels}) == len(labels), "95 % of α, 95 % of C"
        page.locator(f"{table} button.all").click()
        every = page.locator(f"{table} thead th").count()
        assert page.locator(f"{table} tbody tr").first.locator("td:not([hidden])").count() == every > len(shown)
        opened = "[...document.querySelectorAll('.analysis .sheet[open] tbody')].map(of => of.rows.length)"
        assert (max(page.evaluate(opened)) > 8) is (width == 1280)  # on a phone 27 rows would be eight screens
        assert visit.complaints == []
        visit.context.close()


def test_a_chart_that_cannot_be_drawn_says_so_alone_and_no_name_makes_a_page_wide(
    browser: Any, imported: str, tmp_path: Path
) -> None:
    assert imported.count(LONG) > 5
    charts = {name: figure.spec for name, figure in read(imported).figures.items()}
    *others, missing, broken = charts
    assert any(name.startswith("first-") for name in others)
    del charts[missing]
    charts[broken] = {"layer": "none"}
    packed = base64.b64encode(zlib.compress(json.dumps(charts).encode())).decode()
    start = '<script type="text/plain" id="charts">'
    (tmp_path / "page.html").write_text(re.sub(f"{start}[^<]*", f"{start}{packed}", imported))
    visit = Visit(browser, tmp_path / "page.html", 390)
    visit.all_drawn()
    assert visit.blank() == [missing, broken]
    for name in (missing, broken):
        said = visit.page.locator(f"#{name} .plot").inner_text()
        assert said == "This figure could not be drawn; its values stand in a table."
    assert [complaint.partition(":")[0] for complaint in visit.complaints] == [missing, broken]
    for width in (390, 1280):
        visit.page.set_viewport_size({"width": width, "height": 900})
        assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    assert visit.wide_tables() == []
    visit.context.close()


def test_runs_that_families_are_compared_by_are_counted_once(tmp_path: Path) -> None:
    values = [f"{S},{name},{400 * S**-0.34!r},{math.exp(-4 * S**-0.1)!r}" for name in "ab" for S in SIZES[2:]]
    rows = [f"{each},c4,pessimistic" for each in values]
    report = of_table(tmp_path / "store", "S,family,loss_nats,rbp_1,dataset,ties", rows)
    assert report.n_runs == len(report.runs.rows) == len(rows)
    assert report.title == "Scaling laws of a and b on c4"


def test_steps_of_a_plan_are_no_runs(tmp_path: Path) -> None:
    rows = [f"1e8,b,c4,{9 - step},{step},0.1" for step in range(6)] + ["1e8,b,c4,,9,0.05"]
    assert of_table(tmp_path / "store", "S,family,dataset,loss_nats,step,lr", rows).n_runs == 6


def test_imported_runs_are_counted_and_listed_each_once_with_all_that_is_known_of_them(of_losses: Report) -> None:
    """Where one group had a law in size, the runs of the others were in neither."""
    runs = of_losses.runs.records()
    assert of_losses.n_runs == len(runs) == len(TRAINED) + len(SIZES[1:])
    assert {(row["model"], row["non_embedding_params"], row["training_tokens"]) for row in runs} == {
        *((f"m{at}", S, D) for at, (S, D, _) in enumerate(TRAINED)),
        *((f"o{at}", S, None) for at, S in enumerate(SIZES[1:])),
    }
    assert [name for name in runs[0] if all(row[name] is None for row in runs)] == []


def test_a_page_of_losses_opens_with_size_tokens_and_loss_as_tiles(imported: str) -> None:
    """The constants that the losses were made with give the optimum of the tenfold compute."""
    assert imported.index('<dl class="tiles">') < imported.index("<figure")
    tile = r"<div><dt>(.*?)</dt><dd>(.*?)</dd><dd class=\"beside\">95 %: (.*?) to (.*?)[;<]"
    (_, S, *_), (_, D, *_), (loss, y, lo, hi), *_ = re.findall(tile, imported)
    most = 6 * SIZES[-1] * 1e10
    S_D = [(s, 10 * most / 6 / s) for s in np.geomspace(1e6, 1e9, 3000)]
    best = min((1.7 + 400 * s**-0.34 + 400 * d**-0.28, s, d) for s, d in S_D)
    unit = {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
    told = [float(y), *(float(number[:-1]) * unit[number[-1]] for number in (S, D))]
    assert loss == "cross-entropy of such a run"
    assert told == pytest.approx(best, rel=0.05)
    assert float(lo) <= float(y) <= float(hi)


def test_a_page_of_two_variants_opens_with_what_the_change_is_worth_and_trains_both_on_one_budget(
    tmp_path: Path,
) -> None:
    """The variant loses what 1.25 times the size and 1.25 times the tokens lose, so 1.25 squared times the compute."""
    rows = [
        f"{S},{D},{variant},{variant}{at},c4,{1.7 + 400 * (f * S) ** -0.34 + 400 * (f * D) ** -0.28!r}"
        for variant, f, tokens in (("base", 1.0, (1e8, 1e9, 1e10)), ("new", 1.25, (1e8, 1e9, 8e9)))
        for at, (S, D) in enumerate((S, D) for S in SIZES[1:] for D in tokens)
    ]
    found = of_table(tmp_path / "store", "S,D,variant,model,dataset,loss_nats", rows)
    page, words = page_of(found), markdown(found)
    worth, *trained = re.findall(r'<article class="card" id="first-\d">.*?</article>', page, re.S)
    said = re.search(
        r"On c4 toy:new has the cross-entropy that toy:base has at ([\d.]+) \(95 %: ([\d.]+) to ([\d.]+)\) times",
        worth,
    )
    m, lo, hi = map(float, said.groups())
    assert m == pytest.approx(1.25**2, rel=0.01)
    assert lo <= m <= hi
    assert [re.findall(r"the best of ([\d.e+]+) FLOPs", card)[0] for card in trained] == [f"{60 * 1e7 * 1e10:.3g}"] * 2
    assert words.index("What a change is worth") < words.index("What to train")
    assert page.count("Across texts and families</") == 2  # in the contents, and above the section


def test_a_page_of_losses_by_size_has_only_what_they_answer(tmp_path: Path) -> None:
    """Losses have no ranks, and one number of tokens says nothing about tokens."""
    rows = [f"{S},m{at},c4,{1.7 + 400 * S**-0.34!r}" for at, S in enumerate(SIZES[1:])]
    report = of_table(tmp_path / "store", "S,model,dataset,loss_nats", rows)
    (part,) = report.parts
    assert [section.name for section in part.sections] == ["fit", "predict"]
    assert (report.first, report.gaps) == ((), ())
    said = words_of(page_of(report))
    for absent in ("is not drawn", "at k = .", "Bars: 95 % over documents", "ladder", "Tables of the paper", "RBP"):
        assert absent not in said, absent


# ------------------------------------------------------------------------------------------------- where it goes


def test_the_report_of_an_empty_store_says_how_to_fill_it_here_and_in_the_place_of_one(
    cwd: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for _ in range(2):  # a report takes the place of one
        answer = here("report", "--store", tmp_path / "empty", cwd=cwd, check=0, writes=True)
        assert answer.stdout == ""
        assert "report of 0 runs written to report.html" in answer.stderr
    assert [path.name for path in cwd.iterdir()] == ["report.html"]
    text = (cwd / "report.html").read_text()
    assert "This store holds no runs yet" in words_of(text)
    assert "python -m rbpx -m model=ladder dataset=pydoc,stdlib" in words_of(text)
    assert len(text) < 50_000  # nothing is there to draw, so nothing that draws


def test_a_file_takes_the_laws_of_one_answer_and_no_file_those_of_two(store: Path, place: Path, tmp_path: Path) -> None:
    words = ("fit", FAST, "--store", store, "--format", "svg", "--output", tmp_path / "one.svg")
    line = here(*words, cwd=place, check=2).stderr
    assert "is one file, and 2 answers can be drawn; narrow to one, or name a folder" in line
    assert not list(tmp_path.iterdir())
    here(*words, "dataset=prose", cwd=place, check=0, writes=True)
    said = "".join(ElementTree.fromstring((tmp_path / "one.svg").read_bytes()).itertext())
    assert [each in said for each in ("cross-entropy (α ", "−ln RBP1", "−ln RBP100", "nats per token")] == [True] * 4
    assert [path.name for path in tmp_path.iterdir()] == ["one.svg"]


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
    assert "notes.html exists and is not a report of rbpx; name another with output=" in line
    assert notes.read_text() == "<p>Mine.</p>"
    line = refused(place, "--store", store, "--output", folder, "--format", "svg")
    assert "photos exists and is not a folder of figures of rbpx; name another" in line
    assert [path.name for path in folder.iterdir()] == ["me.svg"]


def test_a_wrong_request_is_one_line(store: Path, place: Path, tmp_path: Path) -> None:
    for words, says in (
        (["--output", f"{tmp_path}/nosuch/page.html"], "is in a folder that does not exist"),
        (["--output", str(tmp_path)], "is a folder"),
        (["group=drawn-on-cod"], "group=drawn-on-cod is none of 2 groups; did you mean drawn-on-code"),
        (["--format", "csv"], r"format=csv is not a format of a report; .* html, md, tex, svg, pdf, png"),
        (["dataset=pydoc"], r"dataset=pydoc is not in the store; it holds code, prose"),
    ):
        output = [] if "--output" in words else ["--output", tmp_path / "page.html"]
        assert re.search(says, refused(place, *words, *output, "--store", store))
        assert not list(tmp_path.iterdir())


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
    for colour in (*SERIES[theme], *STEPS[theme]):
        assert contrast(colour, GROUNDS[theme]) >= 3, colour
