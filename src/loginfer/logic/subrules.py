"""Rules made from a rule: its sub-rules R⁻, which leave out atoms, and its near misses, which change one.

Query-guided sampling draws its negatives from what sub-rules wrongly conclude. A sub-rule keeps a proper subset of
the body, inequalities and negations counting as atoms, such that what remains is safe: a negation stays only with
the atoms that bind its variables, so that it means the same as in the rule. So the more a sub-rule keeps, the less it
concludes.

Rules of one shape, equal but for their names, have the same safe subsets: those are computed once for a shape and
kept. A subset comes with a text for its shape and the orders in which its names may be listed, one for each labelling
of its variables that the shape allows; the text and the least list of names are the same for equivalent sub-rules and
for no others, whatever rules they came from.

A system that has learned a rule must not believe what its near misses conclude. There are four edits of a body: the
relation (or type) of one atom is *replaced* by another, one relation atom is *reversed*, one atom is *dropped*, or
one inequality is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby
from operator import itemgetter
from typing import TypeAlias

from loginfer.errors import LimitError
from loginfer.logic.canonical import ATOM, HEAD, INEQUALITY, Link, canonical_text, kind_of, labellings
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Negation, Rule, Term, Variable

# The text of the shape and the least list of names; or the canonical text. Equal for equivalent rules only.
_Key: TypeAlias = tuple[str, object] | str
# Indices of names, in groups of parts that only their names tell apart: group, part, index.
_Order: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]

# With more labellings than this, the canonical text is the cheaper key.
_MANY = 24
_LONGEST = 18

# Ends of a part that are no variables of the rule: a name; a variable of one negation only, once or twice.
_NAMED, _ANYTHING, _ITSELF = -1, -2, -3


@dataclass(frozen=True, slots=True)
class SubRule:
    """A sub-rule of a program.

    Parameters
    ----------
    rule
        The sub-rule, with the variables of the first rule it came from.
    origins
        Numbers of all rules of the program it came from, ascending.
    """

    rule: Rule
    origins: tuple[int, ...]


def subrules(rule: Rule) -> tuple[Rule, ...]:
    """Return the safe rules that keep a proper subset of a rule's body, up to equivalence.

    The longest come first; among those of one length, the ones that keep earlier parts of the body. Only the
    first of equivalent ones is returned. Repeated parts of the body count once.

    Raises
    ------
    LimitError
        For a body of more than 18 parts.
    """
    body = _distinct(rule.body)
    shape, names = _shape(body, rule.head)
    by_key: dict[_Key, Rule] = {}
    for subset in _subsets(shape):
        key = _key(subset, names, body, rule.head)
        if key not in by_key:
            by_key[key] = _kept(subset, body, rule.head)
    return tuple(by_key.values())


def subrules_of(rules: Sequence[Rule]) -> tuple[SubRule, ...]:
    """Return R⁻: the sub-rules of all rules of a program that are not equivalent to a rule of it.

    One per class of equivalent sub-rules, in the order of the rules they first came from.
    """
    program_keys = {_whole_key(rule) for rule in rules}
    by_key: dict[_Key, tuple[Rule, list[int]]] = {}
    for number, rule in enumerate(rules):
        body = _distinct(rule.body)
        shape, names = _shape(body, rule.head)
        for subset in _subsets(shape):
            key = _key(subset, names, body, rule.head)
            entry = by_key.get(key)
            if entry is not None:
                if entry[1][-1] != number:
                    entry[1].append(number)
            elif key not in program_keys:
                by_key[key] = (_kept(subset, body, rule.head), [number])
    return tuple(SubRule(rule, tuple(origins)) for rule, origins in by_key.values())


def kept_parts(rules: Sequence[Rule]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return for each rule which parts of its body its sub-rules in R⁻ keep, as indices into `rule.body`.

    One per class of equivalent sub-rules of a rule, in the order of `subrules`, without those equivalent to
    a rule of the program. A sub-rule of several rules is listed for each of them.
    """
    program_keys = {_whole_key(rule) for rule in rules}
    program_texts = {key[0] for key in program_keys if isinstance(key, tuple)}
    kept_by_rule: list[tuple[tuple[int, ...], ...]] = []
    for rule in rules:
        body = _distinct(rule.body)
        shape, names = _shape(body, rule.head)
        first = [rule.body.index(part) for part in body]
        texts = _texts(shape)
        if max(texts.values(), default=0) <= 1 and "" not in texts and program_texts.isdisjoint(texts):
            # Whatever the names, no two subsets are equivalent, and none is equivalent to a rule.
            kept = tuple(subset.kept for subset in _subsets(shape))
        else:
            keys: dict[_Key, tuple[int, ...]] = {}
            for subset in _subsets(shape):
                keys.setdefault(_key(subset, names, body, rule.head), subset.kept)
            kept = tuple(parts for key, parts in keys.items() if key not in program_keys)
        if len(first) < len(rule.body):
            kept = tuple(tuple(first[i] for i in parts) for parts in kept)
        kept_by_rule.append(kept)
    return tuple(kept_by_rule)


@dataclass(frozen=True, slots=True)
class _Subset:
    """A safe subset of a shape's body.

    Parameters
    ----------
    kept
        Indices of the parts of the body that are kept.
    text
        The shape of what is left, under its least labelling.
    orders
        For each labelling with that text, the order of the names. Empty if there are too many labellings.
    pick
        If there is one order and its groups are single parts: picks the names in that order.
    """

    kept: tuple[int, ...]
    text: str
    orders: tuple[_Order, ...]
    pick: Callable[[Sequence[str]], object] | None = None


def _kept(subset: _Subset, body: Sequence[BodyAtom], head: Atom) -> Rule:
    return Rule.known_safe(tuple(body[i] for i in subset.kept), head)


def _key(subset: _Subset, names: Sequence[str], body: Sequence[BodyAtom], head: Atom) -> _Key:
    if subset.pick is not None:
        return subset.text, subset.pick(names)
    if not subset.orders:
        return canonical_text(_kept(subset, body, head))
    return subset.text, min(_listed(order, names) for order in subset.orders)


def _listed(order: _Order, names: Sequence[str]) -> tuple[str, ...]:
    listed: list[str] = []
    for group in order:
        if len(group) == 1:
            listed += [names[i] for i in group[0]]
        else:
            for part in sorted([names[i] for i in part] for part in group):
                listed += part
    return tuple(listed)


def _whole_key(rule: Rule) -> _Key:
    body = _distinct(rule.body)
    shape, names = _shape(body, rule.head)
    return _key(_subset(shape, tuple(range(len(body)))), names, body, rule.head)


def _distinct(body: Sequence[BodyAtom]) -> list[BodyAtom]:
    """Return the distinct parts; `x != y` and `y != x` are one, and so are negations with the same meaning."""
    parts: dict[object, BodyAtom] = {}
    bound = _bound(body)
    for part in body:
        key: object = part
        if isinstance(part, Inequality):
            key = frozenset(part.terms)
        elif isinstance(part, Negation):
            ends = (_hidden(term, part, bound) or term for term in part.terms)
            key = (Negation, part.atom.relation, *ends)
        parts.setdefault(key, part)
    return list(parts.values())


def _bound(body: Sequence[BodyAtom]) -> set[Term]:
    return {v for part in body if isinstance(part, Atom) for v in part.variables}


def _hidden(term: Term, part: BodyAtom, bound: set[Term]) -> int | None:
    """Return the code of a variable that only this negation has; None for other terms."""
    if not isinstance(part, Negation) or not isinstance(term, Variable) or term in bound:
        return None
    return _ITSELF if part.terms[0] == part.terms[1] else _ANYTHING


def _shape(body: Sequence[BodyAtom], head: Atom) -> tuple[tuple[Link, ...], list[str]]:
    """Return a rule's parts without names, the head last, and three names for each part.

    Variables are numbered as they come; -1 is a term that has a name, and less than that a variable that
    only one negation has. The names are those of the predicate and of both terms, empty for what has none.
    """
    numbers: dict[Term, int] = {}
    bound = _bound(body)
    links: list[Link] = []
    names: list[str] = []
    for part in (*body, head):
        atom = part.atom if isinstance(part, Negation) else part
        names.append(str(atom.relation) if isinstance(atom, Atom) else "")
        ends = []
        terms = part.terms
        if isinstance(part, Inequality) and not part.variables:
            terms = (min(terms, key=lambda t: t.name), max(terms, key=lambda t: t.name))
        for term in terms:
            is_variable = isinstance(term, Variable)
            hidden = _hidden(term, part, bound)
            if hidden is not None:
                ends.append(hidden)
            else:
                ends.append(numbers.setdefault(term, len(numbers)) if is_variable else _NAMED)
            names.append("" if is_variable else term.name)
        links.append((kind_of(part), ends[0], ends[1]))
    links[-1] = (HEAD, links[-1][1], links[-1][2])
    return tuple(links), names


@lru_cache(maxsize=1024)
def _subsets(shape: tuple[Link, ...]) -> tuple[_Subset, ...]:
    """Return the safe proper subsets of a shape's body, longest first, then by index."""
    indices = range(len(shape) - 1)
    if len(indices) > _LONGEST:
        hint = f"sub-rules are for bodies of up to {_LONGEST} parts, inequalities and negations included"
        raise LimitError(f"a body of {len(indices)} parts has 2^{len(indices)} subsets, too many to try", hint=hint)
    return tuple(
        _subset(shape, kept)
        for size in range(len(indices) - 1, -1, -1)
        for kept in combinations(indices, size)
        if _is_safe([*(shape[i] for i in kept), shape[-1]])
    )


@lru_cache(maxsize=1024)
def _texts(shape: tuple[Link, ...]) -> Counter[str]:
    """Return how often each shape of what is left occurs among the safe subsets."""
    return Counter(subset.text for subset in _subsets(shape))


def _is_safe(links: Sequence[Link]) -> bool:
    bound = {end for kind, first, second in links if kind == ATOM for end in (first, second)}
    return all(end < 0 or end in bound for _, first, second in links for end in (first, second))


@lru_cache(maxsize=65536)
def _subset(shape: tuple[Link, ...], kept: tuple[int, ...]) -> _Subset:
    indices = (*kept, len(shape) - 1)
    orders_of: dict[tuple[Link, ...], list[_Order]] = {}
    for labels in labellings([shape[i] for i in indices], _MANY) or ():
        entries = sorted(_entry(shape[i], i, labels) for i in indices)
        text = tuple(link for link, _ in entries)
        groups = [tuple(part for _, part in group) for _, group in groupby(entries, key=lambda e: e[0])]
        # Groups without a name add nothing to the text.
        orders_of.setdefault(text, []).append(tuple(g for g in groups if g[0]))
    if not orders_of:
        return _Subset(kept, "", ())
    least = min(orders_of)
    orders = tuple(dict.fromkeys(orders_of[least]))
    pick = None
    # This is by far the most frequent case, and millions of keys are made.
    if len(orders) == 1 and all(len(group) == 1 for group in orders[0]):
        pick = itemgetter(*(i for (part,) in orders[0] for i in part))
    return _Subset(kept, str(least), orders, pick)


def _entry(link: Link, part: int, labels: dict[int, int]) -> tuple[Link, tuple[int, ...]]:
    """Return a part under a labelling, and the indices of its names, predicate first."""
    kind, first, second = link
    ends = [(labels.get(first, first), 3 * part + 1), (labels.get(second, second), 3 * part + 2)]
    predicate = [3 * part]
    if kind == INEQUALITY:
        ends.sort()
        predicate = []
    named = predicate + [name for end, name in ends if end == _NAMED]
    return (kind, ends[0][0], ends[1][0]), tuple(named)


# The kinds of edits; indices into this list are stored, 0 for none.
EDITS = ("", "replace", "reverse", "drop", "drop-inequality")


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a rule's body.

    Parameters
    ----------
    kind
        One of `EDITS`.
    part
        The index in the body of the part that is edited.
    """

    kind: str
    part: int


def edits_of(rule: Rule) -> tuple[Edit, ...]:
    """Return the edits that make near misses of a rule, in the order of its body.

    The edited rule must be safe, and a connected body must stay connected. Edits that give an equivalent rule, such
    as reversing (x,R,x), are left out, and so are those that give a body with the head in it. A type that is a
    variable cannot be replaced.
    """
    edits = []
    rule_text = canonical_text(rule)
    for i, part in enumerate(rule.body):
        for kind in _kinds(part):
            edit = Edit(kind, i)
            if kind == "replace":
                if rule.head not in (*rule.body[:i], *rule.body[i + 1 :]):
                    edits.append(edit)
            elif _stays_whole(rule, edit):
                edited = near_miss(rule, edit)
                # Dropping a part changes the rule, unless that part is repeated.
                same = (kind == "reverse" or _repeated(part, edited)) and canonical_text(edited) == rule_text
                if rule.head not in edited.body and not same:
                    edits.append(edit)
    return tuple(edits)


def near_miss(rule: Rule, edit: Edit, predicate: str | None = None) -> Rule:
    """Return the rule after an edit.

    Parameters
    ----------
    rule
        The rule.
    edit
        One of `edits_of(rule)`.
    predicate
        For `replace`: the relation, or of a type atom the type, that is put in.
    """
    return Rule.known_safe(_edited(rule, edit, predicate), rule.head)


def is_own_complement(rule: Rule) -> bool:
    """Say whether a rule's only near miss is its complement.

    So it is with (x,R,y) -> (y,R,x): the near miss is "x and y are connected by a relation other than R", and
    no further atom tells the two apart. Looking for such a connection is nearly as good as knowing the rule.
    """
    if len(rule.atoms) != 1 or rule.negations:
        return False
    (part,) = rule.atoms
    if part.is_type or rule.head != Atom(part.object, part.relation, part.subject):
        return False
    # Whether x and y may be equal makes no difference: (x,R,x) concludes itself.
    return all({*inequality.terms} == {*part.terms} for inequality in rule.inequalities)


def tears_apart(rule: Rule, edit: Edit) -> bool:
    """Say whether an edit drops the only atom that connects both ends of the conclusion."""
    ends = set(rule.head.variables)
    joining = [i for i, part in enumerate(rule.body) if isinstance(part, Atom) and ends <= {*part.variables}]
    return edit.kind == "drop" and joining == [edit.part]


def _kinds(part: BodyAtom) -> tuple[str, ...]:
    if isinstance(part, Inequality):
        return ("drop-inequality",)
    if not isinstance(part, Atom):
        return ("drop",)
    if part.is_type:
        return ("replace", "drop") if isinstance(part.object, Constant) else ("drop",)
    return ("replace", "reverse", "drop")


def _repeated(part: BodyAtom, rule: Rule) -> bool:
    """Say whether a body has this part; x != y and y != x are the same."""
    if isinstance(part, Inequality):
        return any({*part.terms} == {*other.terms} for other in rule.inequalities)
    return part in rule.body


def _edited(rule: Rule, edit: Edit, predicate: str | None = None) -> tuple[BodyAtom, ...]:
    before, part, after = rule.body[: edit.part], rule.body[edit.part], rule.body[edit.part + 1 :]
    if edit.kind.startswith("drop"):
        return (*before, *after)
    if not isinstance(part, Atom):
        raise ValueError(f"`{part}` cannot be edited by {edit.kind}")
    if edit.kind == "reverse":
        return (*before, Atom(part.object, part.relation, part.subject), *after)
    if predicate is None:
        raise ValueError("a replaced predicate needs another")
    if part.is_type:
        return (*before, Atom(part.subject, part.relation, Constant(predicate)), *after)
    return (*before, Atom(part.subject, predicate, part.object), *after)


def _stays_whole(rule: Rule, edit: Edit) -> bool:
    """Say whether the rule after an edit is safe, and its body as connected as before."""
    remaining = _edited(rule, edit)
    atoms = [part for part in remaining if isinstance(part, Atom)]
    bound = {variable for atom in atoms for variable in atom.variables}
    others: list[BodyAtom] = [rule.head, *(part for part in remaining if isinstance(part, Inequality))]
    if not atoms or not all(bound.issuperset(part.variables) for part in others):
        return False
    # A negation must mean the same as in the rule: variables that the rule binds stay bound.
    if not all(bound.issuperset({*part.variables}.intersection(rule.variables)) for part in remaining):
        return False
    return _pieces(atoms) <= max(_pieces(rule.atoms), 1)


def _pieces(atoms: Sequence[Atom]) -> int:
    """Return the number of connected components of atoms that share variables."""
    groups: list[set[Variable]] = []
    for atom in atoms:
        variables = set(atom.variables)
        apart = [group for group in groups if group.isdisjoint(variables)]
        groups = [*apart, variables.union(*(group for group in groups if not group.isdisjoint(variables)))]
    return len(groups)
