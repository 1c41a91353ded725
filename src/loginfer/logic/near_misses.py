"""Near misses: the rules that one edit of a rule's body makes.

A system that has learned a rule must not believe what its near misses conclude. There are four edits: the
relation (or type) of one atom is *replaced* by another, one relation atom is *reversed*, one atom is
*dropped*, or one inequality is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loginfer.logic.canonical import canonical_text
from loginfer.logic.rule import Atom, BodyAtom, Inequality, Rule
from loginfer.logic.terms import Constant, Variable

__all__ = ["EDITS", "Edit", "edits_of", "is_own_complement", "near_miss", "tears_apart"]

# The kinds of edits; places in this list are stored, 0 for none.
EDITS = ("", "replace", "reverse", "drop", "drop-inequality")


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a rule's body.

    Parameters
    ----------
    kind
        One of `EDITS`.
    part
        The place in the body of the part that is edited.
    """

    kind: str
    part: int


def edits_of(rule: Rule) -> tuple[Edit, ...]:
    """Return the edits that make near misses of a rule, in the order of its body.

    What an edit leaves must be safe, and where the body was connected it must stay so. An edit that leaves
    the same rule, up to the names of variables, is none, such as reversing (x,R,x), nor one that leaves a
    body with the head in it. A type that is a variable names no type, so it cannot be replaced.
    """
    found = []
    whole = canonical_text(rule)
    for place, part in enumerate(rule.body):
        for kind in _kinds(part):
            edit = Edit(kind, place)
            if kind == "replace":
                if rule.head not in (*rule.body[:place], *rule.body[place + 1 :]):
                    found.append(edit)
            elif _stays_whole(rule, edit):
                edited = near_miss(rule, edit)
                # Without one of its parts a body is another one, unless that part is repeated.
                same = (kind == "reverse" or _repeated(part, edited)) and canonical_text(edited) == whole
                if rule.head not in edited.body and not same:
                    found.append(edit)
    return tuple(found)


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

    So it is with (x,R,y) -> (y,R,x): "y and x are connected by another relation than R" is the near miss,
    and it names no relation that the conclusion does not name. Without another atom to tell the two apart,
    whoever looks for that alone knows nearly as much as who knows the rule.
    """
    if len(rule.atoms) != 1 or rule.negations:
        return False
    (part,) = rule.atoms
    if part.is_type or rule.head != Atom(part.object, part.relation, part.subject):
        return False
    # Whether x and y may be the same makes no difference: (x,R,x) is there already.
    return all({*inequality.terms} == {*part.terms} for inequality in rule.inequalities)


def tears_apart(rule: Rule, edit: Edit) -> bool:
    """Say whether an edit drops the only atom that connects both ends of the conclusion."""
    ends = set(rule.head.variables)
    joining = [
        place for place, part in enumerate(rule.body) if isinstance(part, Atom) and ends <= {*part.variables}
    ]
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
    """Say whether what an edit leaves is safe, and as connected as the body was."""
    left = _edited(rule, edit)
    atoms = [part for part in left if isinstance(part, Atom)]
    bound = {variable for atom in atoms for variable in atom.variables}
    others: list[BodyAtom] = [rule.head, *(part for part in left if isinstance(part, Inequality))]
    if not atoms or not all(bound.issuperset(part.variables) for part in others):
        return False
    # A negation must say the same as in the rule: what the rule binds there stays bound.
    if not all(bound.issuperset({*part.variables}.intersection(rule.variables)) for part in left):
        return False
    return _pieces(atoms) <= max(_pieces(rule.atoms), 1)


def _pieces(atoms: Sequence[Atom]) -> int:
    """Return into how many parts the atoms fall that share no variable."""
    groups: list[set[Variable]] = []
    for atom in atoms:
        mine = set(atom.variables)
        apart = [group for group in groups if group.isdisjoint(mine)]
        groups = [*apart, mine.union(*(group for group in groups if not group.isdisjoint(mine)))]
    return len(groups)
