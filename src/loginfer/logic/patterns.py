"""Inference patterns that have a name, and the instances of a pattern.

The names are those of the seven patterns in the paper's Table 1, and of some of the literature that followed;
`register_pattern` adds others. An instance is a rule with predicates in place of a pattern's templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations, permutations, product

from loginfer.errors import InputError, UnknownNameError
from loginfer.logic.canonical import canonical, map_atoms, replace_templates
from loginfer.logic.dialects import arrow
from loginfer.logic.rule import Atom, Constant, Negation, Pattern, Rule, Template, Term, Variable

# Table 1, in its order.
_TEXTS = {
    "symmetry": "(x,_R,y) -> (y,_R,x)",
    "inversion": "(x,_R,y) -> (y,_S,x)",
    "hierarchy": "(x,_R,y) -> (x,_S,y)",
    "composition": "(x,_R,y), (y,_S,z) -> (x,_T,z)",
    "intersection": "(x,_R,y), (x,_S,y) -> (x,_T,y)",
    "triangle": "(x,_R,y), (x,_S,z), (y,_T,z), x != y, x != z, y != z -> (x,_P,y)",
    "diamond": ("(x,_R,y), (x,_S,z), (y,_T,w), (z,_P,w), x != y, x != z, x != w, y != z, y != w, z != w -> (x,_Q,y)"),
}

# Beyond Table 1: a hierarchy with further premises around its two ends.
_FURTHER = {
    "super-hierarchy": "(x,_R,y), (y,_S,z) -> (x,_P,y)",
    "cup": "(x,_R,y), (y,_S,z), (w,_T,x) -> (x,_P,y)",
    # Without the inequality the second prong would be no further premise if _S and _T are one relation.
    "fork": "(x,_R,y), (y,_S,z), (y,_T,w), z != w -> (x,_P,y)",
    # A hierarchy with exceptions: those whose object leads on by _S.
    "nonmonotonic-hierarchy": "(x,_R,y), not (y,_S,z) -> (x,_T,y)",
}

PATTERN_NAMES: tuple[str, ...] = tuple(_TEXTS)
FURTHER_NAMES: tuple[str, ...] = tuple(_FURTHER)

# What the paper's benchmarks call them: FB-sym, WN-inver, …
SHORT_NAMES: dict[str, str] = {
    "sym": "symmetry",
    "inver": "inversion",
    "hier": "hierarchy",
    "comp": "composition",
    "inter": "intersection",
    "trian": "triangle",
    "diam": "diamond",
}

# Every pattern that has a name, and the names by their short forms.
_PATTERNS: dict[str, str] = _TEXTS | _FURTHER
_NAMES = SHORT_NAMES | {"shier": "super-hierarchy", "nmhier": "nonmonotonic-hierarchy"}


def register_pattern(name: str, text: str, *, short: str | None = None) -> Pattern:
    """Give a pattern a name, which can be used everywhere.

    Parameters
    ----------
    name, short
        Small letters, digits and dashes; no other pattern may be called so.
    text
        The pattern, such as `(x,_R,y), (y,_S,z) -> (x,_T,z)`.
    """
    pattern = arrow.parse_pattern(text, name=name)
    for new in filter(None, (name, short)):
        if not re.fullmatch(r"[a-z][a-z0-9-]*", new) or new in _PATTERNS or new in _NAMES:
            raise InputError(f"`{new}` cannot be the name of a new pattern", hint="choose another name")
    _PATTERNS[name] = text
    if short is not None:
        _NAMES[short] = name
    return pattern


@cache
def _named(name: str) -> Pattern:
    return arrow.parse_pattern(_PATTERNS[name], name=name)


def patterns() -> tuple[Pattern, ...]:
    """Return the seven patterns in the order of Table 1."""
    return tuple(map(_named, PATTERN_NAMES))


def all_patterns() -> tuple[Pattern, ...]:
    """Return every pattern that has a name: the seven of Table 1, then the others."""
    return tuple(map(_named, _PATTERNS))


def pattern_named(name: str) -> Pattern:
    """Return a pattern by its long or short name; case does not count.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    key = name.strip().casefold()
    key = _NAMES.get(key, key)
    if key not in _PATTERNS:
        raise UnknownNameError("pattern", name.strip(), [*_PATTERNS, *_NAMES])
    return _named(key)


def parse_pattern(text_or_name: str | Pattern, *, where: str | None = None) -> Pattern:
    """Return a pattern given by its name or by its text.

    Parameters
    ----------
    text_or_name
        `diamond`, `diam`, or a text such as `(x,_R,y), (y,_S,z), x != z -> (x,_T,z)`. A pattern is returned as it is.
    where
        Where the text came from, for error messages.

    Raises
    ------
    UnknownNameError
        For a word that is not the name of a pattern.
    ParseError
        For a text that does not parse.
    """
    if isinstance(text_or_name, Pattern):
        return text_or_name
    if not isinstance(text_or_name, str):
        raise InputError(f"{type(text_or_name).__name__} is no pattern", where=where, hint="give its name or its text")
    if text_or_name.strip().replace("-", "").replace("_", "").isalnum():
        try:
            return pattern_named(text_or_name)
        except UnknownNameError as error:
            error.where = where
            raise
    return arrow.parse_pattern(text_or_name, where=where)


def instantiate(pattern: Pattern, predicates: Mapping[Template, str] | Sequence[str], head: str | None = None) -> Rule:
    """Return the rule with these predicates in place of the pattern's templates.

    Parameters
    ----------
    pattern
        The pattern.
    predicates
        Names of relations and types by template, or in the order of `pattern.templates`.
    head
        The head's predicate, if its template does not occur in the body; a mapping may hold it instead.

    Raises
    ------
    InputError
        When a template is left without a predicate, or a predicate without a template.
    """
    names = _names_by_template(pattern, predicates)
    missing = pattern.head_template if not pattern.head_in_body else None
    if head is not None:
        if missing is None:
            raise InputError(f"the head of `{pattern}` is determined by its body: `{head}` has no place")
        if names.get(missing, head) != head:
            raise InputError(f"two predicates for the head of `{pattern}`: `{names[missing]}` and `{head}`")
        names[missing] = head
    elif missing is not None and missing not in names:
        raise InputError(f"the head of `{pattern}` needs a predicate", hint=f"give one for the template `{missing}`")

    def atom(a: Atom) -> Atom:
        relation = names[a.relation] if isinstance(a.relation, Template) else a.relation
        object_: Term = Constant(names[a.object]) if isinstance(a.object, Template) else a.object
        return Atom(a.subject, relation, object_)

    return Rule(map_atoms(pattern.body, atom), atom(pattern.head))


def _names_by_template(pattern: Pattern, predicates: Mapping[Template, str] | Sequence[str]) -> dict[Template, str]:
    templates = pattern.templates
    if isinstance(predicates, Mapping):
        allowed = {*templates, *pattern.head.templates}
        unknown = [t for t in predicates if t not in allowed]
        lacking = [t for t in templates if t not in predicates]
        if unknown or lacking:
            culprit = f"no template `{unknown[0]}`" if unknown else f"no predicate for `{lacking[0]}`"
            raise InputError(f"{culprit} in `{pattern}`", hint=f"it has {_list(templates)}")
        return dict(predicates)
    if isinstance(predicates, str) or len(predicates) != len(templates):
        count = 1 if isinstance(predicates, str) else len(predicates)
        message = f"the body of `{pattern}` has {len(templates)} templates, but {count} predicates are given"
        raise InputError(message, hint=f"give one for each of {_list(templates)}, as a list")
    return dict(zip(templates, predicates, strict=True))


def _list(templates: Sequence[Template]) -> str:
    return ", ".join(f"`{t}`" for t in templates) or "none"


@lru_cache(maxsize=256)
def symmetries(pattern: Pattern) -> tuple[tuple[int, ...], ...]:
    """Return the permutations of templates that give an equivalent pattern, sorted.

    Replacing `pattern.templates[i]` by `pattern.templates[p[i]]` throughout, the head included, yields a
    pattern that is equal up to variable renaming and atom order. Instances whose predicates differ by such
    a permutation are one candidate rule. A head template that is not in the body stays; relation and type
    templates are not mixed. The identity is always there.
    """
    templates = pattern.templates
    canonical_pattern = canonical(pattern)
    # Only templates that occur equally often, in the same kind of atom, can be exchanged.
    uses = Counter((t, type(part)) for part in dict.fromkeys(pattern.body) for t in part.templates)
    groups: dict[tuple[bool, int, int, bool], list[int]] = {}
    for i, template in enumerate(templates):
        counts = uses[template, Atom], uses[template, Negation]
        kind = (pattern.is_type_template(template), *counts, template == pattern.head_template)
        groups.setdefault(kind, []).append(i)
    symmetric = []
    for choice in product(*(permutations(group) for group in groups.values())):
        target = dict(zip((i for g in groups.values() for i in g), (i for c in choice for i in c), strict=True))
        names = {templates[i]: templates[target[i]] for i in range(len(templates))}
        if canonical(replace_templates(pattern, names)) == canonical_pattern:
            symmetric.append(tuple(target[i] for i in range(len(templates))))
    return tuple(sorted(symmetric))


@lru_cache(maxsize=256)
def collapses(pattern: Pattern) -> tuple[tuple[int, int], ...]:
    """Return the pairs of templates, by index, that make two atoms of the body one if they are equal, sorted.

    Such an instance has the shorter body of another pattern; it is not a candidate of this one.
    """
    index_of = {template: i for i, template in enumerate(pattern.templates)}
    pairs: set[tuple[int, int]] = set()
    for one, two in combinations(pattern.atoms, 2):
        if one.templates and two.templates and one.templates != two.templates and _can_coincide(one, two):
            first, second = sorted((index_of[one.templates[0]], index_of[two.templates[0]]))
            pairs.add((first, second))
    return tuple(sorted(pairs))


@lru_cache(maxsize=256)
def collapses_onto(pattern: Pattern) -> tuple[tuple[int, str], ...]:
    """Return the templates, by index, each with a name that makes its atom equal to another, sorted.

    In (x,_R,y), (x,p,y) that is `p` for `_R`. Such an instance is no candidate either (see `collapses`).
    """
    pairs: set[tuple[int, str]] = set()
    for one, two in permutations(pattern.atoms, 2):
        if one.templates and not two.templates and _can_coincide(one, two):
            name = two.object.name if one.is_type else str(two.relation)
            pairs.add((pattern.templates.index(one.templates[0]), name))
    return tuple(sorted(pairs))


def _can_coincide(one: Atom, two: Atom) -> bool:
    """Say whether two atoms are one if their predicates are equal."""
    if one.subject != two.subject or one.is_type != two.is_type:
        return False
    if one.is_type:
        return not isinstance(one.object, Variable) and not isinstance(two.object, Variable)
    return one.object == two.object
