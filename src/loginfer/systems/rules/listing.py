"""What stands in a rule file, without a graph: measures as arrays, rules read only when they are shown.

Of AnyBURL's files each line is cut once, which takes a million lines a few seconds. Other dialects are read
as they always are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, UnknownNameError
from loginfer.files import reading
from loginfer.kg.vocabulary import stands_for
from loginfer.logic.dialects.anyburl import ANYBURL
from loginfer.logic.rule import ScoredRule, ZeroRule
from loginfer.logic.rule_files import OnError, dialect_of, read_rules, rule_text
from loginfer.systems.rules.texts import PLAIN_ATOM, cut_line

SortedBy = Literal["confidence", "correct", "length"]
SORTED_BY: tuple[SortedBy, ...] = ("confidence", "correct", "length")

Longs: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Listing:
    """The rules of a file.

    Parameters
    ----------
    path
        The file.
    dialect
        How it is written.
    confidence
        float64[m], NaN where the file does not say.
    predictions, correct
        int64[m], -1 where the file does not say.
    length
        int64[m], atoms in the body.
    line
        int64[m], where each rule stands.
    skipped
        What could not be read: where and why.
    relations
        Gives the relations of a rule, its head's first.
    rule
        Gives a rule.
    """

    path: str
    dialect: str
    confidence: Floats
    predictions: Longs
    correct: Longs
    length: Longs
    line: Longs
    skipped: tuple[str, ...]
    relations: Callable[[int], list[str]]
    rule: Callable[[int], ScoredRule | ZeroRule]

    def __len__(self) -> int:
        return len(self.line)

    def select(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        length: int | None = None,
        min_confidence: float | None = None,
        min_correct: int | None = None,
        sort: SortedBy = "confidence",
    ) -> Longs:
        """Return the indices of some rules, best or shortest first.

        Parameters
        ----------
        head, relation
            The relation of the head, and one that the head or the body has; whole or by its last part.
        length
            Atoms in the body.
        min_confidence, min_correct
            Rules of which the file does not say it are left out.
        sort
            By confidence or correct predictions, largest first, or by length, shortest first; then by
            confidence, by correct predictions and by line.

        Raises
        ------
        UnknownNameError
            If no rule of the file has the relation.
        """
        fits = np.ones(len(self), dtype=np.bool_)
        if length is not None:
            fits &= self.length == length
        if min_confidence is not None:
            fits &= self.confidence >= min_confidence
        if min_correct is not None:
            fits &= self.correct >= min_correct
        if head is not None:
            fits &= self._with(head, "head", slice(0, 1))
        if relation is not None:
            fits &= self._with(relation, "relation", slice(None))
        indices = np.flatnonzero(fits)
        confidence = np.where(np.isnan(self.confidence), -1.0, self.confidence)
        keys = {"confidence": -confidence, "correct": -self.correct, "length": self.length}
        ordered = (keys["correct"], keys["confidence"], keys[sort])
        return np.asarray(indices[np.lexsort(tuple(key[indices] for key in ordered))])

    def _with(self, name: str, kind: str, part: slice) -> npt.NDArray[np.bool_]:
        """Say which rules have a relation in a part of their relations."""
        fits_name: dict[str, bool] = {}
        has_relation = np.zeros(len(self), dtype=np.bool_)
        for i in range(len(self)):
            for relation in self.relations(i)[part]:
                fits = fits_name.get(relation)
                if fits is None:
                    fits = fits_name[relation] = stands_for(name, relation)
                if fits:
                    has_relation[i] = True
        if not has_relation.any():
            raise UnknownNameError(f"{kind} in `{self.path}`", name, fits_name, where=f"--{kind}")
        return has_relation


def list_rules(source: str | Path, on_error: OnError = "fail", dialect: str | None = None) -> Listing:
    """List the rules of a file, or of a rule set that comes with the package.

    Parameters
    ----------
    source
        The file.
    on_error
        What to do with a line that is no rule: "fail" at once, or "skip" it and say so in `skipped`.
    dialect
        Name of the dialect; detected by default.

    Raises
    ------
    InputError
        If the file cannot be read, with file and line, or holds no rule.
    """
    path = Path(source)
    with reading(path):
        plain = path.is_file()
    if plain and (dialect or dialect_of(path)) == ANYBURL.name:
        listing = _list_lines(path, on_error)
    else:
        listing = _list_read(str(source), on_error, dialect)
    if not len(listing):
        raise InputError(f"`{source}` holds no rule")
    return listing


# Confidence (NaN where the file does not say), predictions and correct ones (-1), atoms in the body, line.
_Row: TypeAlias = tuple[float, int, int, int, int]
_COLUMNS = [("confidence", "f8"), *((name, "i8") for name in ("predictions", "correct", "length", "line"))]


def _list_lines(path: Path, on_error: OnError) -> Listing:
    """Cut the lines of one of AnyBURL's files; what has unusual names in it is read by the dialect's reader."""
    rows: list[_Row] = []
    texts: list[str] = []
    read: dict[int, ScoredRule | ZeroRule] = {}
    skipped: list[str] = []
    is_plain: dict[str, bool] = {}
    for number, line in enumerate(rule_text(path).split("\n"), 1):
        cut = cut_line(line)
        if cut is not None:
            for atom in cut[3]:
                if atom not in is_plain:
                    is_plain[atom] = PLAIN_ATOM.fullmatch(atom) is not None
                if not is_plain[atom]:
                    cut = None
                    break
        if cut is not None:
            rows.append((cut[2], *cut[:2], len(cut[3]) - 1, number))
        elif not line.strip():
            continue
        else:
            where = f"{path}:{number}"
            try:
                rule = ANYBURL.read_any(line.removesuffix("\r").lstrip(), where, {})
            except InputError as error:
                problem = InputError(error.message, where=where, hint=error.hint)
                if on_error == "fail":
                    raise problem from None
                skipped.append(str(problem).partition("\n")[0])
                continue
            read[len(rows)] = rule
            rows.append(_row(rule, number))
        texts.append(line)

    def rule_at(index: int) -> ScoredRule | ZeroRule:
        return read.get(index) or ANYBURL.read_any(texts[index], f"{path}:{rows[index][4]}", {})

    def relations_at(index: int) -> list[str]:
        if index in read:
            return _relations(read[index])
        head, _, body = texts[index].split("\t")[3].partition(" <= ")
        return [atom.partition("(")[0] for atom in (head, *body.split("), ")) if atom.strip()]

    return _listing(str(path), ANYBURL.name, rows, tuple(skipped), relations_at, rule_at)


def _list_read(source: str, on_error: OnError, dialect: str | None) -> Listing:
    """Read a file in any dialect."""
    file = read_rules(source, dialect, on_error)
    rules: list[ScoredRule | ZeroRule] = [*file.rules, *file.zero]
    rows = [_row(rule, rule.line or 0) for rule in rules]
    return _listing(source, file.dialect, rows, file.skipped, lambda i: _relations(rules[i]), rules.__getitem__)


def _listing(
    path: str,
    dialect: str,
    rows: list[_Row],
    skipped: tuple[str, ...],
    relations: Callable[[int], list[str]],
    rule: Callable[[int], ScoredRule | ZeroRule],
) -> Listing:
    table: Any = np.array(rows, dtype=_COLUMNS)
    confidence, predictions, correct, length, line = (table[name] for name, _ in _COLUMNS)
    return Listing(path, dialect, confidence, predictions, correct, length, line, skipped, relations, rule)


def _row(rule: ScoredRule | ZeroRule, line: int) -> _Row:
    return (
        np.nan if rule.confidence is None else rule.confidence,
        -1 if rule.predictions is None else rule.predictions,
        -1 if rule.correct is None else rule.correct,
        len(rule.rule.atoms) if isinstance(rule, ScoredRule) else 0,
        line,
    )


def _relations(rule: ScoredRule | ZeroRule) -> list[str]:
    if isinstance(rule, ZeroRule):
        return [str(rule.head.relation)]
    return [str(atom.relation) for atom in (rule.rule.head, *rule.rule.atoms)]
