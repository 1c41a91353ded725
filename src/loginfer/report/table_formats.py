"""Tables as Markdown, as LaTeX and as CSV. Whatever comes from data is escaped."""

from __future__ import annotations

import csv
import io
import re

from loginfer.report.table_values import Entry, TableValue

__all__ = ["markdown_text", "to_csv", "to_latex", "to_markdown"]

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


def _markdown_entry(entry: Entry) -> str:
    shown = markdown_text(_ours(entry))
    if entry.bold and shown:
        shown = f"**{shown}**"
    shown += ",".join(map(str, entry.notes)).translate(_SUPERSCRIPTS)
    return f"{shown} ({_number(entry.paper, entry.digits)})".strip() if entry.paper is not None else shown


def markdown_text(text: str) -> str:
    """Return a text so that it is read as it stands, in one line."""
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


def _latex_entry(entry: Entry) -> str:
    shown = _latex(_ours(entry))
    if entry.bold and shown:
        shown = rf"\textbf{{{shown}}}"
    if entry.notes:
        shown += rf"\textsuperscript{{{','.join(map(str, entry.notes))}}}"
    return f"{shown} ({_number(entry.paper, entry.digits)})".strip() if entry.paper is not None else shown


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


# -- CSV --------------------------------------------------------------------------------------------


def to_csv(table: TableValue) -> str:
    """Return a table for programs: numbers as they are, intervals and the paper's in columns of their own.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    kinds = [_columns(table, i) for i in range(len(table.header))]
    writer.writerow(
        [_csv(name + ending) for name, parts in zip(table.header, kinds, strict=True) for ending in parts]
    )
    for row in table.rows:
        cells: list[str] = []
        for entry, parts in zip(row, kinds, strict=True):
            values = {"": entry.value, " ±": entry.half, " paper": entry.paper}
            for ending in parts:
                value = values[ending]
                word = _csv(entry.text) if ending == "" else ""
                cells.append(word if value is None else _plain(value, entry.digits + 3))
        writer.writerow(cells)
    return stream.getvalue()


def _columns(table: TableValue, column: int) -> list[str]:
    """Return the endings of the columns that one column needs."""
    entries = [row[column] for row in table.rows]
    halves = [" ±"] if any(entry.half is not None for entry in entries) else []
    papers = [" paper"] if any(entry.paper is not None for entry in entries) else []
    return ["", *halves, *papers]


def _plain(value: float, digits: int) -> str:
    shown = f"{value:.{digits}f}"
    return shown.rstrip("0").rstrip(".")


def _csv(text: str) -> str:
    plain = " ".join(text.split())
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain


# -- what all have in common ------------------------------------------------------------------------


def _ours(entry: Entry) -> str:
    """Return what stands before the paper's number."""
    if entry.value is None:
        return entry.text
    shown = _number(entry.value, entry.digits)
    if entry.half is not None:
        shown += f" ± {_number(entry.half, entry.digits)}"
    return f"{entry.text} {shown}" if entry.text else shown


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"
