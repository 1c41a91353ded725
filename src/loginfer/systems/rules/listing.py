"""What stands in a rule file, without a graph: measures as arrays, rules read only when they are shown.

Of AnyBURL's files each line is cut once, which takes a million lines a few seconds. Other dialects are read
as they always are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, UnknownNameError
from loginfer.files import reading
from loginfer.logic.dialects.anyburl import ANYBURL
from loginfer.logic.rule import ScoredRule, ZeroRule
from loginfer.logic.rule_files import OnError, dialect_of, parse_rules, read_rules, rule_text

SortedBy = Literal["confidence", "correct", "length"]
SORTED_BY: tuple[SortedBy, ...] = ("confidence", "correct", "length")

Longs: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

# An atom with names that cannot be misread, a count and a confidence.
_ATOM = re.compile(r"[^\s(),]+\([^\s(),]+,[^\s(),]+\)")
_DIGITS = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")


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
        What could not be read: place and reason.
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
        """Return the places of some rules, best or shortest first.

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
        places = np.flatnonzero(fits)
        confidence = np.where(np.isnan(self.confidence), -1.0, self.confidence)
        keys = {"confidence": -confidence, "correct": -self.correct, "length": self.length}
        ordered = (keys["correct"], keys["confidence"], keys[sort])
        return np.asarray(places[np.lexsort(tuple(key[places] for key in ordered))])

    def _with(self, name: str, kind: str, part: slice) -> npt.NDArray[np.bool_]:
        """Say which rules have a relation in a part of their relations."""
        known: dict[str, bool] = {}
        found = np.zeros(len(self), dtype=np.bool_)
        for place in range(len(self)):
            for each in self.relations(place)[part]:
                fits = known.get(each)
                if fits is None:
                    fits = known[each] = name in (each, short_name(each))
                if fits:
                    found[place] = True
        if not found.any():
            raise UnknownNameError(f"{kind} in `{self.path}`", name, known, where=f"--{kind}")
        return found


def short_name(name: str) -> str:
    """Return the last part of a name, behind the last / or #, if there is one."""
    return name[max(name.rfind("/"), name.rfind("#")) + 1 :] or name


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
        found = _list_lines(path, on_error)
    else:
        found = _list_read(str(source), on_error, dialect)
    if not len(found):
        raise InputError(f"`{source}` holds no rule")
    return found


# -- AnyBURL's files -------------------------------------------------------------------------------


def _list_lines(path: Path, on_error: OnError) -> Listing:
    """Cut the lines of a file; what has unusual names in it is read by the dialect's reader."""
    text = rule_text(path)
    predictions: list[int] = []
    correct: list[int] = []
    confidence: list[float] = []
    length: list[int] = []
    numbers: list[int] = []
    texts: list[str] = []
    careful: dict[int, ScoredRule | ZeroRule] = {}
    skipped: list[str] = []
    plain = _Plain()
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.split("\t")
        size = plain.size(cells)
        if size is not None:
            predictions.append(int(cells[0]))
            correct.append(int(cells[1]))
            confidence.append(float(cells[2]))
            length.append(size)
            texts.append(line)
            numbers.append(number)
            continue
        for rule in _read_line(line, path, number, on_error, skipped):
            careful[len(texts)] = rule
            predictions.append(-1 if rule.predictions is None else rule.predictions)
            correct.append(-1 if rule.correct is None else rule.correct)
            confidence.append(np.nan if rule.confidence is None else rule.confidence)
            length.append(len(rule.rule.atoms) if isinstance(rule, ScoredRule) else 0)
            texts.append(line)
            numbers.append(number)

    def rule_at(place: int) -> ScoredRule | ZeroRule:
        return careful.get(place) or ANYBURL.read_any(texts[place], f"{path}:{numbers[place]}", {})

    def relations_at(place: int) -> list[str]:
        rule = careful.get(place)
        if rule is not None:
            return _relations(rule)
        head, _, body = texts[place].split("\t")[3].partition(" <= ")
        return [atom.partition("(")[0] for atom in (head, *body.split("), ")) if atom.strip()]

    return Listing(
        str(path),
        ANYBURL.name,
        np.array(confidence, dtype=np.float64),
        np.array(predictions, dtype=np.int64),
        np.array(correct, dtype=np.int64),
        np.array(length, dtype=np.int64),
        np.array(numbers, dtype=np.int64),
        tuple(skipped),
        relations_at,
        rule_at,
    )


class _Plain:
    """Tells lines that can be cut at their signs from those that have to be read with care."""

    def __init__(self) -> None:
        # Whether a text is an atom; in a body all but the last have lost their bracket.
        self._atoms: dict[str, bool] = {}
        self._open_atoms: dict[str, bool] = {}

    def size(self, cells: list[str]) -> int | None:
        """Return how many atoms the body has; None if the line is no plain one. Measures have to be there."""
        if len(cells) != 4:
            return None
        predictions, correct, confidence, rule = cells
        if not _DIGITS.fullmatch(predictions) or not _DIGITS.fullmatch(correct):
            return None
        if not _NUMBER.fullmatch(confidence) or float(confidence) > 1:
            return None
        head, implied, body = rule.partition(" <= ")
        if not implied or not (self._atoms.get(head) or self._is_atom(head)):
            return None
        body = body.rstrip()
        if not body:
            return 0
        *pieces, last = body.split("), ")
        if not (self._atoms.get(last) or self._is_atom(last)):
            return None
        for piece in pieces:
            if not (self._open_atoms.get(piece) or self._is_open_atom(piece)):
                return None
        return len(pieces) + 1

    def _is_atom(self, text: str) -> bool:
        self._atoms[text] = known = _ATOM.fullmatch(text) is not None
        return known

    def _is_open_atom(self, text: str) -> bool:
        self._open_atoms[text] = known = self._is_atom(f"{text})")
        return known


def _read_line(
    line: str, path: Path, number: int, on_error: OnError, skipped: list[str]
) -> Iterator[ScoredRule | ZeroRule]:
    """Read one line as the dialect does: a rule, or none."""
    try:
        file = parse_rules(line.removesuffix("\r"), ANYBURL.name, path=f"{path}:{number}")
    except InputError as error:
        problem = _placed(error, path, number)
        if on_error == "fail":
            raise problem from None
        skipped.append(str(problem).partition("\n")[0])
        return
    yield from file.rules
    yield from file.zero


def _placed(error: InputError, path: Path, number: int) -> InputError:
    """Return an error about the only line of a text as one about a line of a file."""
    return InputError(error.message, where=f"{path}:{number}", hint=error.hint)


# -- other dialects --------------------------------------------------------------------------------


def _list_read(source: str, on_error: OnError, dialect: str | None) -> Listing:
    file = read_rules(source, dialect, on_error)
    rules: list[ScoredRule | ZeroRule] = [*file.rules, *file.zero]
    return Listing(
        source,
        file.dialect,
        np.array([np.nan if r.confidence is None else r.confidence for r in rules], dtype=np.float64),
        np.array([-1 if r.predictions is None else r.predictions for r in rules], dtype=np.int64),
        np.array([-1 if r.correct is None else r.correct for r in rules], dtype=np.int64),
        np.array([len(r.rule.atoms) if isinstance(r, ScoredRule) else 0 for r in rules], dtype=np.int64),
        np.array([r.line or 0 for r in rules], dtype=np.int64),
        file.skipped,
        lambda place: _relations(rules[place]),
        lambda place: rules[place],
    )


def _relations(rule: ScoredRule | ZeroRule) -> list[str]:
    if isinstance(rule, ZeroRule):
        return [str(rule.head.relation)]
    return [str(atom.relation) for atom in (rule.rule.head, *rule.rule.atoms)]
