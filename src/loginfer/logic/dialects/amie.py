"""AMIE lines: `?a  <r>  ?c  ?c  <s>  ?b   => ?a  <t>  ?b`, then measures.

Behind the rule come tab-separated measures: head coverage, standard confidence, PCA confidence, positive
examples, body size, PCA body size, functional variable and bounds; from the left, as many as there are. The
confidence of the `ScoredRule` is the standard one, its predictions the body size, correct are the positive
examples; the others are kept as text. Lines without `=>`, such as the header and AMIE's messages, are no
rules and are ignored.

Angle brackets around a name are quotes, not part of it. `rdf:type` without brackets means type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from loginfer.errors import InputError, ParseError
from loginfer.kg import RDF_TYPE
from loginfer.logic.dialects import base
from loginfer.logic.rule import Atom, Constant, Rule, ScoredRule, Term, Variable, is_literal

# The measures in AMIE's order, and which of them are fields of a `ScoredRule`.
_MEASURES = (
    "head_coverage",
    "confidence",
    "pca_confidence",
    "correct",
    "predictions",
    "pca_body_size",
    "functional_variable",
    "lower_bound",
    "pca_lower_bound",
    "pca_estimation",
)
_FIELDS = ("confidence", "correct", "predictions")
# Names are two spaces apart and may hold single ones.
_WIDE = re.compile(r"=>(?=\s|\Z)|\S+(?: (?!=>(?:\s|\Z))\S+)*")
_NARROW = re.compile(r"\S+")
_QUESTION = re.compile(r"\?([A-Za-z_][A-Za-z0-9_]*)\Z")


def _read(text: str, prefixes: Mapping[str, str], where: str | None) -> ScoredRule:
    rule_text, *cells = text.split("\t")
    with base.located(where):
        rule = _rule(text, rule_text, where)
    values = {name: cell.strip() for name, cell in zip(_MEASURES, cells, strict=False) if cell.strip()}
    column = len(rule_text) + 2
    return ScoredRule(
        rule,
        _count(values.get("predictions"), text, column, where),
        _count(values.get("correct"), text, column, where),
        _number(values.get("confidence"), text, column, where),
        tuple((name, value) for name, value in values.items() if name not in _FIELDS),
    )


def _number(value: str | None, text: str, column: int, where: str | None) -> float | None:
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        raise ParseError(text, column, "measures, numbers with tabs between them", where=where) from None


def _count(value: str | None, text: str, column: int, where: str | None) -> int | None:
    number = _number(value, text, column, where)
    if number is None:
        return None
    if not number.is_integer():
        raise ParseError(text, column, "whole numbers of examples", where=where)
    return int(number)


def _rule(text: str, rule_text: str, where: str | None) -> Rule:
    matches: list[re.Match[str]] = []
    for tokens in (_WIDE, _NARROW):
        matches = list(tokens.finditer(rule_text))
        words = [m.group() for m in matches]
        if "=>" in words and (words.index("=>") % 3, len(words) % 3) == (0, 1):
            break
    words = [m.group() for m in matches]
    if "=>" not in words:
        raise ParseError(text, len(rule_text.rstrip()) + 1, "`=>` and the head", where=where)
    arrow = words.index("=>")
    if arrow % 3:
        raise ParseError(text, matches[arrow].start() + 1, "subject, relation and object of each atom", where=where)
    if len(words) != arrow + 4:
        at = matches[arrow + 4].start() + 1 if len(words) > arrow + 4 else len(rule_text.rstrip()) + 1
        expected = "the end of the rule" if len(words) > arrow + 4 else "subject, relation and object of the head"
        raise ParseError(text, at, expected, where=where)
    atoms = [_atom(text, matches[i : i + 3], where) for i in (*range(0, arrow, 3), arrow + 1)]
    return Rule(atoms[:-1], atoms[-1])


def _atom(text: str, words: list[re.Match[str]], where: str | None) -> Atom:
    subject, relation, object_ = (m.group() for m in words)
    if relation.startswith("?"):
        raise ParseError(text, words[1].start() + 1, "the name of a relation", where=where)
    return Atom(_term(subject), RDF_TYPE if relation == "rdf:type" else _name(relation), _term(object_))


def _term(word: str) -> Term:
    variable = _QUESTION.match(word)
    return Variable(variable.group(1)) if variable else Constant(_name(word))


def _name(word: str) -> str:
    return base.unescape(word[1:-1]) if word.startswith("<") and word.endswith(">") and len(word) > 1 else word


def _write(scored: ScoredRule) -> str:
    rule = scored.rule
    base.refuse_all_but_atoms("AMIE", rule)
    names = base.spell_variables(rule, str, base.VARIABLE)

    def name(text: str) -> str:
        return text if is_literal(text) and not re.search(r"\s", text) else base.write_iri(text)

    def part(atom: Atom) -> str:
        subject, object_ = (f"?{names[t]}" if isinstance(t, Variable) else name(t.name) for t in atom.terms)
        return f"{subject}  {'rdf:type' if atom.is_type else name(str(atom.relation))}  {object_}"

    body = "  ".join(part(atom) for atom in rule.atoms)
    return "\t".join([f"{body}   => {part(rule.head)}", *_cells(scored)])


def _cells(scored: ScoredRule) -> list[str]:
    values = dict(scored.extra)
    for key in values:
        if key not in _MEASURES:
            raise InputError(f"AMIE has no measure `{key}`", hint=f"it has {', '.join(_MEASURES)}")
    for field in _FIELDS:
        value = getattr(scored, field)
        if value is not None:
            values[field] = repr(value)
    present = [i for i, measure in enumerate(_MEASURES) if measure in values]
    return [values.get(measure, "") for measure in _MEASURES[: present[-1] + 1]] if present else []


def _directive(text: str) -> base.Directive:
    return None if "=>" in text else {}


def _looks_like(text: str) -> bool:
    return re.search(r"\s=>\s", f" {text} ") is not None


AMIE = base.Dialect(
    name="amie",
    about="AMIE lines, with or without their measures",
    example="?a  <worksFor>  ?c  ?c  <partOf>  ?b   => ?a  <memberOf>  ?b",
    comments=None,
    read_directive=_directive,
    read_statement=_read,
    write_statement=_write,
    looks_like=_looks_like,
    keeps_scores=True,
    rank=3,
)
base.register_dialect(AMIE)
