"""Renders a report as text: Markdown, or LaTeX for a paper."""

import re
from collections.abc import Iterable
from typing import Final

from rbpx.display.section import MARKED, Fact, Section, marked
from rbpx.display.table import Table
from rbpx.display.terminal import shown_columns
from rbpx.display.vocabulary import GREEK, true_minus
from rbpx.errors import number_of
from rbpx.files.escapes import visible_line
from rbpx.report.contents import MOST_OPEN, Report
from rbpx.spelling import typed


def markdown(report: Report) -> str:
    """Renders a report's sentences and tables in Markdown, without figures."""
    where = f"{number_of(report.n_runs, 'run')}, {number_of(report.n_tokens, 'scored token')}, store `{report.store}`"
    lines = [f"<!-- rbpx report {report.version} -->", f"# {_md(report.title)}", ""]
    lines += [f"{where}, {report.made_at} UTC, rbpx {report.version}.", ""]
    if not report.has_contents:
        command = typed("measure", model="ladder", dataset="pydoc")
        lines += [f"This store holds no runs yet: `{command}` measures some.", ""]
    for part in report.first:
        lines += [f"## {_md(part.title)}", "", *_facts(part.facts), *_section(part.sections[0])]
    if len(report.overview.rows) > MOST_OPEN and not report.verb:
        lines += _table(report.overview, 2)
    if report.across and not report.parts:
        command = f"`{typed('report', group=report.example)}`"
        lines += [f"{command} gives the sections of one group; write its name with - for blanks.", ""]
    for part in report.parts:
        lines += [f"## {_md(part.title)}", "", _md(part.about), "", *_facts(part.facts)]
        for section in part.sections:
            lines += _section(section)
    if report.gaps:
        lines += ["## Across texts and families", ""]
        for section in report.gaps:
            lines += _section(section)
    lines += [line for sheet in (*report.paper, report.runs) if sheet.rows for line in _table(sheet, 2)]
    return "\n".join(lines).rstrip() + "\n"


def _facts(facts: Iterable[Fact]) -> list[str]:
    lines = [f"- {_md(label)}: **{_md(value)}** ({_md(beside)})" for label, value, beside in facts]
    return [*lines, ""] if lines else []


def _section(section: Section) -> list[str]:
    lines = [f"### {_md(section.title)}", ""]
    if section.sentences:
        lines += [" ".join(_md(sentence) for sentence in section.sentences), ""]
    lines += [f"> {_md(doubt)}" for doubt in section.doubts] + ([""] if section.doubts else [])
    for figure in section.figures:
        reason = getattr(figure, "reason", None)
        lines += [f"{_md(figure.title)}: not drawn. {_md(reason)}", ""] if reason else []
    for sheet in section.sheets:
        lines += _table(sheet, 4)
    for passage in section.passages:
        lines += [f"#### {_md(passage.title)}", "", f"{_md(passage.rule)} {MARKED}", ""]
        for reading in passage.readings:
            text = "".join(map(marked, reading.pieces))
            lines += [f"{_md(reading.model)}: {_md(reading.about)}.", "", "````text", text, "````", ""]
    return lines


def _table(sheet: Table, level: int) -> list[str]:
    lines = [f"{'#' * level} {_md(sheet.title)}", "", _row(each.name for each in sheet.columns)]
    lines += [_row("---:" if each.is_number else "---" for each in sheet.columns)]
    lines += [_row(each.text(row) for each in sheet.columns) for row in sheet.rows]
    return [*lines, "", *([_md(" ".join(sheet.notes())), ""] if sheet.notes() else [])]


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(_md(text) for text in texts)} |"


def _md(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", true_minus(visible_line(" ".join(text.split()))))


_SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--", "²": "$^2$", "≤": r"$\le$",
    "·": r"$\cdot$", "×": r"$\times$", "±": r"$\pm$", "Σ": r"$\Sigma$", "ω": r"$\omega$", "…": r"\ldots{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    **{sign: rf"$\{name}$" for sign, name in GREEK.items()},
}  # fmt: skip


_LAST_LATIN: Final = "\u017f"
_WIDTH: Final = 80  # characters of a terminal whose columns fit a page of paper


def latex(report: Report) -> str:
    r"""Renders a report in LaTeX to \input, with booktabs: tables 1 and 2 and all laws, or one question's tables."""
    lines = [f"% rbpx report {report.version}, {report.made_at} UTC, store {report.store}".replace("\n", " ")]
    lines += [r"% needs \usepackage{booktabs}", ""]
    for sheet in report.paper:
        lines += _grouped(sheet)
    for part in report.parts:
        for section in part.sections if report.verb else part.sections[:1]:
            for sheet in section.sheets:
                if sheet.rows and (report.verb or sheet.name == "laws"):
                    lines += _plain(sheet, f"{sheet.title}: {part.title}", f"{part.name}-{sheet.name}")
    for section in report.gaps if report.verb else ():
        for sheet in section.sheets:
            if not sheet.is_wide:
                lines += _plain(sheet, f"{sheet.title}: {section.title}", f"{section.name}-{sheet.name}")
    return "\n".join(lines).rstrip() + "\n"


def _grouped(sheet: Table) -> list[str]:
    """Two columns of names, then pairs of R2 and slope, each under its heading."""
    pairs = [column.name.removesuffix(": R²") for column in sheet.columns[2::2]]
    above = " & ".join(rf"\multicolumn{{2}}{{c}}{{{_tex(pair)}}}" for pair in pairs)
    rules = " ".join(rf"\cmidrule(lr){{{3 + 2 * at}-{4 + 2 * at}}}" for at in range(len(pairs)))
    heads = " & ".join([*(_tex(column.name) for column in sheet.columns[:2]), *["$R^2$ & slope"] * len(pairs)])
    body, last = [], None
    for row in sheet.rows:
        first, *others = (column.text(row) for column in sheet.columns)
        if last not in (None, first):
            body.append(r"\midrule")
        body.append(_line(["" if first == last else first, *others]))
        last = first
    return _float(sheet.name, sheet.title, "ll" + "rr" * len(pairs), [rf" & & {above} \\", rules, rf"{heads} \\"], body)


def _plain(sheet: Table, title: str, label: str) -> list[str]:
    sheet = sheet.only(shown_columns(sheet, _WIDTH))
    kinds = "".join("r" if column.is_number else "l" for column in sheet.columns)
    heads = " & ".join(_head(column.name) for column in sheet.columns)
    body = [_line(column.text(row) for column in sheet.columns) for row in sheet.rows]
    return _float(label, title, kinds, [rf"{heads} \\"], body)


def _head(heading: str) -> str:
    """Sets the heading of a column; one letter is a quantity."""
    return f"${heading}$" if len(heading) == 1 and heading.isascii() and heading.isalpha() else _tex(heading)


def _line(texts: Iterable[str]) -> str:
    return " & ".join(map(_tex, texts)) + r" \\"


def _float(label: str, title: str, kinds: str, head: list[str], body: list[str]) -> list[str]:
    caption = _tex(re.sub("^Table [12]: ", "", title))  # LaTeX numbers its tables itself
    return [
        r"\begin{table}[t]", r"\centering", r"\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{caption}}}", rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", *head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}",
        r"\end{table}", "",
    ]  # fmt: skip


def _tex(text: str) -> str:
    """Escapes a text for LaTeX and sets indices, exponents and products."""
    line = text if text.isprintable() else visible_line(" ".join(text.split()))
    plain = "".join(_SPECIAL.get(character, _known(character)) for character in true_minus(line))
    plain = re.sub(r"RBP\\_(\w+)", r"RBP$_{\1}$", plain)
    plain = re.sub(r"\$\\(\w+)\$\\_(\w+)", r"$\\\1_{\2}$", plain)
    plain = re.sub(r"(\w+)\\textasciicircum\{\}\$-\$\$(\\\w+(?:_\{\w+\})?)\$", r"$\1^{-\2}$", plain)
    plain = re.sub(r"(\w+)\\textasciicircum\{\}\((-?)(\w+)\)", r"$\1^{\2\\mathrm{\3}}$", plain)
    return re.sub(r"C((?: \$\\cdot\$ \$[^$]+\$)+)", lambda found: f"$C{found[1].replace('$', '')}$", plain)


def _known(character: str) -> str:
    """Latin as it is, any other character by its number in Unicode, which LaTeX's fonts lack."""
    is_latin = character.isascii() or (character.isalpha() and character <= _LAST_LATIN)
    return character if is_latin else f"U+{ord(character):04X}"
