"""One representative for all rules that differ in variable names and atom order only.

Variables get colours that do not depend on their names: first by the atoms in which they occur, then
refined by the colours of the variables they meet there, until nothing changes. Where variables are left
with equal colours, each of them in turn is singled out and refinement goes on; every discrete colouring
found so is a labelling of the rule, and the least labelled rule is the canonical one. A branch is skipped
when its first labelling gives a rule that an earlier branch of the same node also gave: an automorphism
then maps one branch to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count, permutations
from typing import TypeAlias, TypeVar

from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Negation, Pattern, Rule, Template, Term, Variable

Clause = TypeVar("Clause", Rule, Pattern)

# A variable is its number (≥ 0), any other term the complement ~i of its index among the sorted others.
Code: TypeAlias = int
# Kind, predicate (-1 for an inequality) and the two terms.
Part: TypeAlias = tuple[int, int, Code, Code]
HEAD, ATOM, INEQUALITY, NEGATION = 0, 1, 2, 3
# A variable that only one negation has needs no number: it stands for anything, or for one thing twice.
ANYTHING, ITSELF = -(1 << 30), -(1 << 30) - 1
# A part without its names: kind and the two ends, variables' numbers or -1.
Link: TypeAlias = tuple[int, int, int]

_LETTERS = "xyzwvutsrqponmlkjihgfedcba"


def canonical(rule: Clause) -> Clause:
    """Return the one rule that stands for all that are equal up to variable renaming and atom order.

    Repeated atoms are merged, and so are `x != y` and `y != x`. Atoms come before inequalities, and those
    before negations, each sorted; variables are named x, y, z, w, … in the order in which the body mentions
    them. In a pattern, templates count as names; `equivalent` can also compare patterns up to the renaming
    of templates.
    """
    numbers: dict[Term, int] = {v: i for i, v in enumerate(rule.variables)}
    parts_and_head: tuple[BodyAtom, ...] = (*rule.body, rule.head)
    hidden = {v for negation in rule.negations for v in rule.existential(negation)}
    terms = {term for part in parts_and_head for term in part.terms}
    other_terms = sorted({_term_key(term) for term in terms if term not in numbers and term not in hidden})
    predicates = sorted({_predicate_key(atom) for atom in rule})
    term_codes = {key: ~i for i, key in enumerate(other_terms)}
    predicate_codes = {key: i for i, key in enumerate(predicates)}

    def code_of(term: Term, part: BodyAtom) -> Code:
        if term in hidden:
            return ITSELF if part.terms[0] == part.terms[1] else ANYTHING
        return numbers[term] if term in numbers else term_codes[_term_key(term)]

    def encode(part: BodyAtom, kind: int) -> Part:
        first, second = (code_of(t, part) for t in part.terms)
        atom = part.atom if isinstance(part, Negation) else part
        return (kind, predicate_codes[_predicate_key(atom)] if isinstance(atom, Atom) else -1, first, second)

    parts = {encode(part, kind_of(part)) for part in rule.body}
    parts.add(encode(rule.head, HEAD))
    form = least_form(sorted(parts), len(numbers))

    # The labelling is canonical, so names by first mention are canonical too, and easier to read.
    names: dict[Code, Variable] = {}
    for kind, _, first, second in form:
        for code in (first, second):
            if kind == ATOM and code >= 0 and code not in names:
                names[code] = Variable(_variable_name(len(names)))
    order = {code: sort_key for sort_key, code in enumerate(names)}
    fresh = count(len(names))

    def term(code: Code) -> Term:
        if code >= 0:
            return names[code]
        if code in (ANYTHING, ITSELF):
            return Variable(_variable_name(next(fresh)))
        is_template, name = other_terms[~code]
        return Template(name) if is_template else Constant(name)

    def atom(part: Part) -> Atom:
        is_template, name = predicates[part[1]]
        subject = term(part[2])
        object_ = subject if part[3] == ITSELF else term(part[3])
        return Atom(subject, Template(name) if is_template else name, object_)

    def sort_key(code: Code) -> tuple[int, int]:
        return (0, order[code]) if code >= 0 else (1, ~code)

    differ = sorted(sorted((sort_key(p[2]), sort_key(p[3]))) for p in form if p[0] == INEQUALITY)
    codes = {sort_key(code): code for p in form for code in (p[2], p[3])}
    body: list[BodyAtom] = [atom(p) for p in form if p[0] == ATOM]
    body += [Inequality(term(codes[left]), term(codes[right])) for left, right in differ]
    body += [Negation(atom(p)) for p in form if p[0] == NEGATION]
    return type(rule)(body, next(atom(p) for p in form if p[0] == HEAD))


def kind_of(part: BodyAtom) -> int:
    """Return the kind of a part of a body."""
    if isinstance(part, Negation):
        return NEGATION
    return INEQUALITY if isinstance(part, Inequality) else ATOM


def canonical_text(rule: Clause) -> str:
    """Return the text of the canonical form: the same for equivalent rules, different for others."""
    return str(canonical(rule))


def equivalent(left: Clause, right: Clause, *, rename_templates: bool = False) -> bool:
    """Say whether two rules, or two patterns, are equal up to variable renaming and atom order.

    Parameters
    ----------
    left, right
        Two rules or two patterns.
    rename_templates
        For patterns: also up to renaming of templates, relation templates among themselves and type
        templates among themselves.
    """
    target = canonical(right)
    if not rename_templates or not isinstance(left, Pattern) or not isinstance(right, Pattern):
        return canonical(left) == target
    return any(canonical(replace_templates(left, names)) == target for names in _bijections(left, right))


def replace_templates(pattern: Pattern, names: dict[Template, Template]) -> Pattern:
    """Return the pattern with templates exchanged, in the head as well."""

    def atom(a: Atom) -> Atom:
        relation = names.get(a.relation, a.relation) if isinstance(a.relation, Template) else a.relation
        object_ = names.get(a.object, a.object) if isinstance(a.object, Template) else a.object
        return Atom(a.subject, relation, object_)

    return Pattern(map_atoms(pattern.body, atom), atom(pattern.head))


def map_atoms(body: Iterable[BodyAtom], atom: Callable[[Atom], Atom]) -> list[BodyAtom]:
    """Return a body with each atom replaced, negated or not."""

    def mapped(part: BodyAtom) -> BodyAtom:
        if isinstance(part, Negation):
            return Negation(atom(part.atom))
        return atom(part) if isinstance(part, Atom) else part

    return [mapped(part) for part in body]


def _bijections(left: Pattern, right: Pattern) -> Iterable[dict[Template, Template]]:
    sides = []
    for pattern in (left, right):
        templates = tuple(dict.fromkeys(t for atom in pattern for t in atom.templates))
        types = [t for t in templates if pattern.is_type_template(t)]
        sides.append(([t for t in templates if t not in types], types))
    (left_relations, left_types), (right_relations, right_types) = sides
    if len(left_relations) != len(right_relations) or len(left_types) != len(right_types):
        return
    for relations in permutations(right_relations):
        for kinds in permutations(right_types):
            yield dict(zip([*left_relations, *left_types], [*relations, *kinds], strict=True))


def least_form(parts: Sequence[Part], variables: int) -> tuple[Part, ...]:
    """Return the least labelled rule in the search tree; see the top of this file.

    Parameters
    ----------
    parts
        Distinct parts over variables 0 … `variables` - 1.
    variables
        How many variables there are.
    """
    return min(_forms(parts, _refine(parts, [0] * variables)))


def _forms(parts: Sequence[Part], colours: list[int]) -> set[tuple[Part, ...]]:
    cell = _first_cell(colours)
    if not cell:
        return {_labelled(parts, colours)}
    forms: set[tuple[Part, ...]] = set()
    for variable in cell:
        child = _refine(parts, _single_out(colours, cell, variable))
        if not forms or _first_form(parts, child) not in forms:
            forms |= _forms(parts, child)
    return forms


def _first_form(parts: Sequence[Part], colours: list[int]) -> tuple[Part, ...]:
    while cell := _first_cell(colours):
        colours = _refine(parts, _single_out(colours, cell, cell[0]))
    return _labelled(parts, colours)


def labellings(links: Sequence[Link], limit: int) -> list[dict[int, int]] | None:
    """Return the labellings of a rule's variables that its shape allows; None if they exceed a limit.

    Colours come from the shape alone here: neither predicates nor constants are compared. So rules that are
    equal up to names have corresponding labellings.

    Parameters
    ----------
    links
        Kind and ends of each part; an end is a variable's number, or negative.
    limit
        How many there may be.
    """
    present = sorted({end for _, *ends in links for end in ends if end >= 0})
    numbers = {end: i for i, end in enumerate(present)}
    parts = [(kind, 0, numbers.get(first, first), numbers.get(second, second)) for kind, first, second in links]
    discrete: list[list[int]] = []
    waiting = [_refine(parts, [0] * len(present))]
    while waiting:
        colours = waiting.pop()
        cell = _first_cell(colours)
        if cell:
            waiting += [_refine(parts, _single_out(colours, cell, v)) for v in cell]
        else:
            discrete.append(colours)
        if len(discrete) + len(waiting) > limit:
            return None
    return [dict(zip(present, labels, strict=True)) for labels in discrete]


def _first_cell(colours: list[int]) -> list[int]:
    """Return the variables of the least colour that several share, or nothing."""
    if len(set(colours)) == len(colours):
        return []
    shared = min(c for c in colours if colours.count(c) > 1)
    return [v for v, c in enumerate(colours) if c == shared]


def _single_out(colours: list[int], cell: list[int], variable: int) -> list[int]:
    return [c + 1 if v in cell and v != variable else c for v, c in enumerate(colours)]


def _refine(parts: Sequence[Part], colours: list[int]) -> list[int]:
    """Refine until stable. A colour is the number of variables with a smaller one."""
    while True:
        meets: list[list[tuple[int, int, int, int]]] = [[] for _ in colours]
        for kind, predicate, first, second in parts:
            # A negative code is the same in all labellings, and no colour, since colours are not negative. A
            # term that meets itself is a position of its own.
            if first == second:
                if first >= 0:
                    meets[first].append((kind, predicate, 2, 0))
                continue
            if first >= 0:
                meets[first].append((kind, predicate, 0, colours[second] if second >= 0 else second))
            if second >= 0:
                position = 0 if kind == INEQUALITY else 1
                meets[second].append((kind, predicate, position, colours[first] if first >= 0 else first))
        signatures = [(colour, sorted(m)) for colour, m in zip(colours, meets, strict=True)]
        ordered = sorted(signatures)
        refined = [ordered.index(s) for s in signatures]
        if refined == colours:
            return colours
        colours = refined


def _labelled(parts: Sequence[Part], labels: list[int]) -> tuple[Part, ...]:
    form = []
    for kind, predicate, first, second in parts:
        one = labels[first] if first >= 0 else first
        two = labels[second] if second >= 0 else second
        if kind == INEQUALITY and one > two:
            one, two = two, one
        form.append((kind, predicate, one, two))
    return tuple(sorted(set(form)))


def _term_key(term: Term) -> tuple[bool, str]:
    return (isinstance(term, Template), term.name)


def _predicate_key(atom: Atom) -> tuple[bool, str]:
    if isinstance(atom.relation, Template):
        return (True, atom.relation.name)
    return (False, atom.relation)


def _variable_name(number: int) -> str:
    turn, letter = divmod(number, len(_LETTERS))
    return _LETTERS[letter] + (str(turn) if turn else "")
