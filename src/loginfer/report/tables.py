"""Tables for papers: as a value, then as Markdown, LaTeX or CSV, where whatever comes from data is escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loginfer.errors import UnknownNameError
from loginfer.evaluation.metric_table import is_share, lower_is_better, metric_title
from loginfer.evaluation.seeds import half_interval
from loginfer.report.collection import Cell, Collection
from loginfer.report.paper import METRICS, SYSTEMS, paper_value


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What stands in one cell of a table: a word, a number, or both.

    Parameters
    ----------
    text
        A word: a name, or why there is no number.
    value
        The number, in the unit in which it is shown.
    half
        Half the width of its interval.
    paper
        The paper's number, shown in brackets.
    digits
        Behind the decimal point.
    bold
        Whether it stands out.
    notes
        Numbers of the table's notes that are about it, from 1.
    """

    text: str = ""
    value: float | None = None
    half: float | None = None
    paper: float | None = None
    digits: int = 1
    bold: bool = False
    notes: tuple[int, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether there is a number."""
        return self.value is not None or self.paper is not None


@dataclass(frozen=True, slots=True)
class TableValue:
    """A table.

    Parameters
    ----------
    title
        What it shows, in one line.
    header
        The columns' names.
    rows
        One entry for each column in every row.
    notes
        Footnotes; entries refer to them by number, from 1. The others are about the whole table.
    blocks
        Numbers of the rows before which a new block begins.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableEntry, ...], ...]
    notes: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row of {len(row)} entries in a table of {len(self.header)} columns")

    @property
    def numbers(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        return tuple(any(row[i].is_number for row in self.rows) for i in range(len(self.header)))


def best_in_bold(
    entries: Sequence[TableEntry], among: Sequence[bool] | None = None, *, lowest: bool = False
) -> list[TableEntry]:
    """Return entries with the best numbers in bold, compared as they are printed; a single number is not bold.

    Parameters
    ----------
    entries
        The entries that are compared.
    among
        Which of them take part; by default all.
    lowest
        Whether the smallest number is the best.
    """
    competing = [True] * len(entries) if among is None else among
    numbers = [
        round(entry.value, entry.digits)
        for entry, competes in zip(entries, competing, strict=True)
        if competes and entry.value is not None
    ]
    if len(numbers) < 2:
        return list(entries)
    best = min(numbers) if lowest else max(numbers)
    return [
        replace(entry, bold=competes and entry.value is not None and round(entry.value, entry.digits) == best)
        for entry, competes in zip(entries, competing, strict=True)
    ]


# More rows than this do not fit on a page.
_PAGE = 45

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#",
    "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "ε": r"$\varepsilon$", "⁻": "$^-$", "±": r"$\pm$", "×": r"$\times$", "→": r"$\rightarrow$",
    "≥": r"$\geq$", "≤": r"$\leq$", "≠": r"$\neq$", "∩": r"$\cap$", "∈": r"$\in$", "−": "$-$",
    "–": "--", "…": r"\ldots{}", "“": "``", "”": "''",
}  # fmt: skip


# -- Markdown ---------------------------------------------------------------------------------------


def to_markdown(table: TableValue) -> str:
    """Return a table as Markdown, with its title above and its notes below."""
    rules = ["--:" if number else "---" for number in table.numbers]
    lines = [f"**{markdown_text(table.title)}**", ""]
    lines.append("| " + " | ".join(map(markdown_text, table.header)) + " |")
    lines.append("|" + "|".join(rules) + "|")
    lines += ["| " + " | ".join(map(_markdown_entry, row)) + " |" for row in table.rows]
    if table.notes:
        lines.append("")
        lines += [f"{number}. {markdown_text(note)}" for number, note in enumerate(table.notes, start=1)]
    return "\n".join(lines) + "\n"


def _markdown_entry(entry: TableEntry) -> str:
    text = markdown_text(_ours(entry))
    text = f"**{text}**" if entry.bold and text else text
    return _with_paper(entry, text + ",".join(map(str, entry.notes)).translate(_SUPERSCRIPTS))


def markdown_text(text: str) -> str:
    """Return a text escaped for Markdown, in one line."""
    plain = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", plain.replace("&", "&amp;"))


# -- LaTeX ------------------------------------------------------------------------------------------


def to_latex(table: TableValue) -> str:
    """Return a table as LaTeX for the package booktabs, and longtable where it is longer than a page."""
    columns = "".join("r" if number else "l" for number in table.numbers)
    header = " & ".join(map(_latex, table.header)) + r" \\"
    body = []
    for number, row in enumerate(table.rows):
        if number in table.blocks and number:
            body.append(r"\midrule")
        body.append(" & ".join(map(_latex_entry, row)) + r" \\")
    notes = [rf"\textsuperscript{{{i}}} {_latex(note)}" for i, note in enumerate(table.notes, start=1)]
    caption = rf"\caption{{{_latex(table.title)}}}"
    if len(table.rows) > _PAGE:
        lines = [rf"\begin{{longtable}}{{{columns}}}", caption + r" \\", r"\toprule", header, r"\midrule"]
        lines += [r"\endfirsthead", r"\toprule", header, r"\midrule", r"\endhead", r"\bottomrule"]
        lines += [r"\endfoot", *body, r"\end{longtable}", *_paragraphs(notes)]
    else:
        lines = [r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
        lines += [header, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", *_paragraphs(notes)]
        lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def _paragraphs(notes: list[str]) -> list[str]:
    return [rf"\par\footnotesize {note}" for note in notes]


def _latex_entry(entry: TableEntry) -> str:
    text = _latex(_ours(entry))
    text = rf"\textbf{{{text}}}" if entry.bold and text else text
    text += rf"\textsuperscript{{{','.join(map(str, entry.notes))}}}" if entry.notes else ""
    return _with_paper(entry, text)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


# -- CSV --------------------------------------------------------------------------------------------


def to_csv(table: TableValue) -> str:
    """Return a table for programs: numbers as they are, intervals and the paper's in columns of their own.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    endings = [_endings(table, i) for i in range(len(table.header))]
    columns = zip(table.header, endings, strict=True)
    writer.writerow([_csv(name + ending) for name, parts in columns for ending in parts])
    for row in table.rows:
        cells: list[str] = []
        for entry, parts in zip(row, endings, strict=True):
            values = {"": entry.value, " ±": entry.half, " paper": entry.paper}
            for ending in parts:
                value = values[ending]
                word = _csv(entry.text) if ending == "" else ""
                cells.append(word if value is None else _plain(value, entry.digits + 3))
        writer.writerow(cells)
    return stream.getvalue()


def _endings(table: TableValue, column: int) -> list[str]:
    """Return the endings of the CSV columns that one column of the table needs."""
    entries = [row[column] for row in table.rows]
    halves = [" ±"] if any(entry.half is not None for entry in entries) else []
    papers = [" paper"] if any(entry.paper is not None for entry in entries) else []
    return ["", *halves, *papers]


def _plain(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".")


def _csv(text: str) -> str:
    plain = " ".join(text.split())
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain


# -- all formats ------------------------------------------------------------------------------------


def _ours(entry: TableEntry) -> str:
    """Return what stands before the paper's number."""
    if entry.value is None:
        return entry.text
    text = _number(entry.value, entry.digits)
    if entry.half is not None:
        text += f" ± {_number(entry.half, entry.digits)}"
    return f"{entry.text} {text}" if entry.text else text


def _with_paper(entry: TableEntry, text: str) -> str:
    """Return a text with the paper's number behind it, if there is one."""
    return text if entry.paper is None else f"{text} ({_number(entry.paper, entry.digits)})".strip()


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


# The paper does not say how it ranked; its figures fit this protocol best.
PAPER_PROTOCOL = "filtered"


def result_table(collection: Collection, metric: str, protocol: str | None = None) -> TableValue:
    """Return one metric of all systems on all benchmarks.

    Shares are in percent. Several seeds give the mean and half the width of its interval; the paper's figure
    stands in brackets, where it has one. The best of each row is bold; the oracle, which knows the rules,
    does not compete.

    Parameters
    ----------
    collection
        The runs.
    metric
        Its name in `metrics.json`, such as `balanced_accuracy` or, with a protocol, `c_mrr`.
    protocol
        Of the ranking: `filtered`, `seen`, `given` or `unfiltered`.

    Raises
    ------
    UnknownNameError
        If no run has such a metric.
    """
    _check(collection, metric, protocol)
    rows = []
    for benchmark in collection.benchmark_names:
        cells = [collection.cell(system, benchmark) for system in collection.systems]
        entries = [_entry(cell, metric, protocol) for cell in cells]
        competing = [cell is not None and cell.name != "oracle" for cell in cells]
        rows.append((TableEntry(benchmark), *best_in_bold(entries, competing, lowest=lower_is_better(metric))))
    unit = ", in percent" if is_share(metric) else ""
    where = f", ranking {protocol}" if protocol else ""
    several = any(len(cell.runs) > 1 for cell in collection.cells)
    notes = ["± half the 95 % interval of the mean over seeds (Student's t)."] if several else []
    if any(entry.paper is not None for row in rows for entry in row):
        metric_name = METRICS[metric]
        note = f"In brackets: the paper's {metric_name}"
        if metric == "balanced_accuracy":
            note += ", which it computes on decisions, not on confidences"
        elif protocol is not None:
            note += ", whose protocol it does not state"
        notes.append(note + ".")
    names = tuple(SYSTEMS.get(name, name) for name in collection.systems)
    title = f"{printed_title(metric)}{where}{unit}"
    return TableValue(title, ("benchmark", *names), tuple(rows), tuple(notes))


def printed_title(metric: str) -> str:
    """Return the name of a metric at the beginning of a caption: `C-MRR` for `c_mrr`, `Balanced accuracy`."""
    title = metric_title(metric)
    return title[:1].upper() + title[1:]


def _entry(cell: Cell | None, metric: str, protocol: str | None) -> TableEntry:
    if cell is None:
        return TableEntry()
    factor = 100.0 if is_share(metric) else 1.0
    values = [factor * value for value in cell.values(metric, protocol)]
    paper = None
    if protocol in (None, PAPER_PROTOCOL):
        paper = paper_value(cell.name, cell.first.benchmark, metric)
    paper = None if paper is None else 100 * paper
    if not values:
        return TableEntry("–", paper=paper)
    return TableEntry(value=sum(values) / len(values), half=half_interval(values), paper=paper)


def _check(collection: Collection, metric: str, protocol: str | None) -> None:
    names: dict[str, None] = {}
    for cell in collection.cells:
        for figures in cell.metrics:
            if protocol is None:
                names |= dict.fromkeys(figures["metrics"])
            else:
                ranking = figures["ranking"].get(protocol, {})
                names |= {name: None for name, value in ranking.items() if not isinstance(value, str | dict)}
    if protocol is not None and not names:
        protocols = dict.fromkeys(p for cell in collection.cells for m in cell.metrics for p in m["ranking"])
        raise UnknownNameError("ranking protocol in these runs", protocol, protocols)
    if metric not in names:
        raise UnknownNameError("metric in these runs", metric, names)
