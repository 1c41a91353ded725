"""The rule language of section 2.3, without any data: terms, atoms, rules and patterns.

Also here: a rule with the measures of a miner, and rules and patterns as HTML for notebooks, with variables,
relations and constants highlighted and full names in tooltips.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from loginfer.errors import InputError, LogInferError
from loginfer.kg import RDF_TYPE
from loginfer.kg.vocabulary import IRI_IN_TEXT, short_names, shortened
from loginfer.notebook import Markup, element, fragment, joined

# A bare word is a variable if it is one lower-case letter with digits or primes (x, y2, z'), or starts
# with a question mark. Everything else that stands for a subject or an object is a constant.
VARIABLE = re.compile(r"[a-z][0-9]*'*\Z|\?[A-Za-z_][A-Za-z0-9_]*\Z")
TEMPLATE = re.compile(r"_[A-Za-z][0-9]*\Z")
_VARIABLE_NAME = re.compile(r"[a-z][0-9]*'*\Z|[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, order=True)
class Variable:
    """A variable, by its name: `x`, `y2`, or any identifier behind a question mark (`?person`).

    The question mark is part of the text only; the name is without it.
    """

    name: str

    def __post_init__(self) -> None:
        if not _VARIABLE_NAME.match(self.name):
            hint = "use letters, digits and underscores: x, y2, person"
            raise InputError(f"`{self.name}` cannot be the name of a variable", hint=hint)

    def __str__(self) -> str:
        return self.name if VARIABLE.match(self.name) else f"?{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Constant:
    """A constant, or a type as the object of a type atom, by its name in the graph."""

    name: str

    def __str__(self) -> str:
        return quote(self.name)


@dataclass(frozen=True, slots=True, order=True)
class Template:
    """A placeholder in a pattern for any relation (`_R`) or type (`_t`); the underscore is part of the name."""

    name: str

    def __post_init__(self) -> None:
        if not TEMPLATE.match(self.name):
            hint = "a template is an underscore and one letter, with digits if needed: _R, _t2"
            raise InputError(f"`{self.name}` cannot be the name of a template", hint=hint)

    def __str__(self) -> str:
        return self.name


Term: TypeAlias = Variable | Constant | Template
Predicate: TypeAlias = str | Template

# A bare word in our syntax: everything up to a space, a bracket, a separator, `->` or `!=`.
WORD = re.compile(r"""(?:(?!->|!=)[^\s,()<>\[\]{}"\\&|∧≠→?'#])(?:(?!->|!=)[^\s,()<>\[\]{}"\\&|∧≠→])*""")
# An RDF literal as N-Triples writes it.
LITERAL = re.compile(r'"(?:[^"\\\n\r]|\\[^\n\r])*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^<[^<>"{}|^`\\\s]*>)?(?!["@^])')
# A name in angle brackets. Inside, these are written with a backslash, so that any name fits on one line.
BRACKETED = re.compile(r"<((?:[^\\>\n\r]|\\[^\n\r])*)>")
_ESCAPES = {"\\": "\\\\", ">": "\\>", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Words that mean something else than a name where a name may stand.
RESERVED = frozenset({"type", "a", "rdf:type", "not"})


def is_literal(name: str) -> bool:
    """Say whether a name is an RDF literal as N-Triples writes it; rules carry those as they are."""
    return LITERAL.fullmatch(name) is not None


def quote(name: str) -> str:
    """Write a name so that the rule parser reads it back: bare where possible, else in < >."""
    if is_literal(name):
        return name
    if (
        WORD.fullmatch(name)
        and name not in RESERVED
        and not name.endswith(".")
        and not VARIABLE.match(name)
        and not TEMPLATE.match(name)
    ):
        return name
    return "<" + "".join(_ESCAPES.get(c, c) for c in name) + ">"


class _Part:
    """What the parts of a clause share; each has two `terms`."""

    __slots__ = ()

    @property
    def terms(self) -> tuple[Term, Term]:
        """Both terms."""
        raise NotImplementedError

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables in the order of the terms; existential ones of a negation included."""
        return tuple(dict.fromkeys(t for t in self.terms if isinstance(t, Variable)))


@dataclass(frozen=True, slots=True)
class Atom(_Part):
    """(d1, R, d2) or (d, type, t).

    A type atom has `RDF_TYPE` as its relation and the type as its object, a constant (or, in a pattern, a type
    template), just as the triples it matches.

    Parameters
    ----------
    subject
        A variable or constant.
    relation
        Name of the relation; a template in a pattern.
    object
        A variable or constant; a type or type template in a type atom.
    """

    subject: Term
    relation: Predicate
    object: Term

    @property
    def is_type(self) -> bool:
        """Whether this is (d, type, t)."""
        return self.relation == RDF_TYPE

    @property
    def terms(self) -> tuple[Term, Term]:
        """Subject and object."""
        return (self.subject, self.object)

    @property
    def templates(self) -> tuple[Template, ...]:
        """The templates of a pattern's atom: a relation template or a type template."""
        return tuple(p for p in (self.relation, self.object) if isinstance(p, Template))

    def rename(self, names: Mapping[Term, Term]) -> Atom:
        """Return the atom with terms replaced."""
        return Atom(names.get(self.subject, self.subject), self.relation, names.get(self.object, self.object))

    def __str__(self) -> str:
        if isinstance(self.relation, Template):
            relation = str(self.relation)
        else:
            relation = "type" if self.is_type else quote(self.relation)
        return f"({self.subject},{relation},{self.object})"


@dataclass(frozen=True, slots=True)
class Inequality(_Part):
    """(d1 ≠ d2)."""

    left: Term
    right: Term

    @property
    def terms(self) -> tuple[Term, Term]:
        """Both sides."""
        return (self.left, self.right)

    @property
    def templates(self) -> tuple[Template, ...]:
        """No template ever stands in an inequality."""
        return ()

    def rename(self, names: Mapping[Term, Term]) -> Inequality:
        """Return the inequality with terms replaced."""
        return Inequality(names.get(self.left, self.left), names.get(self.right, self.right))

    def __str__(self) -> str:
        return f"{self.left} != {self.right}"


@dataclass(frozen=True, slots=True)
class Negation(_Part):
    """not (d1, R, d2): negation as failure.

    A variable that no atom of the rule's body has is existential inside: `not (y,S,z)` says that there is
    no z with (y,S,z). Such a variable belongs to one negation only.
    """

    atom: Atom

    @property
    def terms(self) -> tuple[Term, Term]:
        """Subject and object of the atom."""
        return self.atom.terms

    @property
    def templates(self) -> tuple[Template, ...]:
        """The templates of the atom in a pattern."""
        return self.atom.templates

    def rename(self, names: Mapping[Term, Term]) -> Negation:
        """Return the negation with terms replaced."""
        return Negation(self.atom.rename(names))

    def __str__(self) -> str:
        return f"not {self.atom}"


BodyAtom: TypeAlias = Atom | Inequality | Negation


@dataclass(frozen=True)
class _Clause:
    """B1 ∧ … ∧ Bn → H, whether with templates (`Pattern`) or without (`Rule`)."""

    body: tuple[BodyAtom, ...]
    head: Atom

    def __init__(self, body: Iterable[BodyAtom], head: Atom) -> None:
        object.__setattr__(self, "body", tuple(body))
        object.__setattr__(self, "head", head)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.head, Atom):
            raise InputError(f"the head must be an atom, not `{self.head}`")
        bound = {v for atom in self.atoms for v in atom.variables}
        parts: tuple[BodyAtom, ...] = (self.head, *self.inequalities)
        for part in parts:
            for variable in part.variables:
                if variable not in bound:
                    part_name = "head" if part is self.head else f"inequality `{part}`"
                    hint = f"use `{variable}` in an atom of the body (a rule must be safe)"
                    raise InputError(f"variable `{variable}` of the {part_name} is not bound in `{self}`", hint=hint)
        negations = dict.fromkeys(self.negations)
        for variable in {v: None for negation in negations for v in self.existential(negation)}:
            if sum(variable in negation.variables for negation in negations) > 1:
                message = f"variable `{variable}` is under two negations of `{self}`, and no atom binds it"
                hint = f"use `{variable}` in an atom of the body, or another name under each `not`"
                raise InputError(message, hint=hint)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The ≠-free atoms of the body, without those under a negation."""
        return tuple(b for b in self.body if isinstance(b, Atom))

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """The inequalities of the body."""
        return tuple(b for b in self.body if isinstance(b, Inequality))

    @cached_property
    def negations(self) -> tuple[Negation, ...]:
        """The negated atoms of the body."""
        return tuple(b for b in self.body if isinstance(b, Negation))

    def existential(self, negation: Negation) -> tuple[Variable, ...]:
        """Return the variables that only this negation has: it says that there are no values for them."""
        return tuple(v for v in negation.variables if v not in self.variables)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables in the order in which the body's ≠-free atoms mention them.

        Existential variables of negations are not among them: no witness has a value for them.
        """
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @cached_property
    def body_text(self) -> str:
        """The body as text."""
        return ", ".join(str(b) for b in self.body)

    def __str__(self) -> str:
        return f"{self.body_text} -> {self.head}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return fragment(clause_markup(self))  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Atom]:
        """All ≠-free atoms, negated ones after the others, the head last."""
        yield from self.atoms
        for negation in self.negations:
            yield negation.atom
        yield self.head


class Rule(_Clause):
    """A Datalog rule: B1 ∧ … ∧ Bn → H, where each variable of H or of an inequality occurs in some atom Bi.

    Parameters
    ----------
    body
        Atoms, inequalities and negations. May be empty for a head without variables.
    head
        A ≠-free atom.
    """

    @classmethod
    def known_safe(cls, body: tuple[BodyAtom, ...], head: Atom) -> Rule:
        """Return a rule without checking it, for callers that make many and know that they are safe."""
        rule = cls.__new__(cls)
        object.__setattr__(rule, "body", body)
        object.__setattr__(rule, "head", head)
        return rule

    def _check(self) -> None:
        for atom in self:
            if atom.templates:
                message = f"`{atom.templates[0]}` in `{self}` is a template: this is a pattern, not a rule"
                raise InputError(message, hint="write a name that looks like a template in angle brackets: <_R>")
        super()._check()

    @property
    def relations(self) -> tuple[str, ...]:
        """The distinct relations, body first; `RDF_TYPE` for type atoms."""
        return tuple(dict.fromkeys(str(atom.relation) for atom in self))

    @property
    def constants(self) -> tuple[str, ...]:
        """The distinct constants and types, body first."""
        terms = [t for part in (*self.body, self.head) for t in part.terms]
        return tuple(dict.fromkeys(t.name for t in terms if isinstance(t, Constant)))


class Pattern(_Clause):
    """An inference pattern: a rule with templates for relations and types.

    Parameters
    ----------
    body
        Atoms, inequalities and negations; at least one atom.
    head
        A ≠-free atom; its template may or may not occur in the body.
    name
        What to call it; the text by default.
    """

    name: str

    def __init__(self, body: Iterable[BodyAtom], head: Atom, name: str | None = None) -> None:
        super().__init__(body, head)
        object.__setattr__(self, "name", name or str(self))

    def _check(self) -> None:
        if not self.atoms:
            raise InputError(f"the pattern `{self}` has no atom in its body")
        relation = {t for atom in self for t in (atom.relation,) if isinstance(t, Template)}
        types = {t for atom in self for t in (atom.object,) if isinstance(t, Template)}
        for template in sorted(relation & types):
            raise InputError(f"`{template}` stands for a relation and for a type in `{self}`")
        for atom in self:
            if isinstance(atom.object, Template) and not atom.is_type:
                hint = "type templates belong into type atoms: (x,type,_t)"
                raise InputError(f"`{atom.object}` in `{atom}` stands where a variable or constant should", hint=hint)
        super()._check()

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The distinct templates of the body in the order of its text."""
        return tuple(dict.fromkeys(t for part in self.body for t in part.templates))

    @property
    def head_template(self) -> Template | None:
        """The template in the head, if there is one."""
        return self.head.templates[0] if self.head.templates else None

    @property
    def head_in_body(self) -> bool:
        """Whether the head's predicate is determined by the body's."""
        return self.head_template is None or self.head_template in self.templates

    def is_type_template(self, template: Template) -> bool:
        """Whether a template stands for a type."""
        return any(atom.object == template for atom in self)


@dataclass(frozen=True, slots=True)
class ScoredRule:
    """A rule as it stands in a file, with its measures where the file has some.

    Parameters
    ----------
    rule
        The rule.
    predictions
        How many pairs the body yields for the head.
    correct
        How many of those are in the training set.
    confidence
        The miner's confidence, computed from the two; for AMIE the standard confidence.
    extra
        Further measures by name, as text: those only AMIE has.
    line
        The line of the file; not part of equality.
    """

    rule: Rule
    predictions: int | None = None
    correct: int | None = None
    confidence: float | None = None
    extra: tuple[tuple[str, str], ...] = ()
    line: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return str(self.rule)


@dataclass(frozen=True, slots=True)
class ZeroRule:
    """AnyBURL's `h(X,c) <= `: a head that holds of everything.

    It is no Datalog rule, because X is not bound; so it is kept apart from those.

    Parameters
    ----------
    head
        The head, with one variable.
    predictions, correct, confidence, line
        As for a `ScoredRule`.
    """

    head: Atom
    predictions: int | None = None
    correct: int | None = None
    confidence: float | None = None
    line: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"-> {self.head}"


# Atoms, inequalities and what follows them, in the text of a rule or of a part of one.
_TERM = rf"{LITERAL.pattern}|<(?:[^\\>\n\r]|\\[^\n\r])*>|\??{WORD.pattern}"
_PART = re.compile(rf"(?:\(({_TERM}),({_TERM}),({_TERM})\)|({_TERM}) != ({_TERM}))( -> |, )?")
# A triple in a sentence; names with brackets, commas or white space in them are left as they are.
_TRIPLE = re.compile(r"\(([^\s(),]+), ([^\s(),]+), ([^\s(),]+)\)")
_SIGNS = {" -> ": " → ", ", ": " ∧ ", None: ""}
_MISLEADING = re.compile(rf'{VARIABLE.pattern}|[^"]*[,()]')
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def _name_in(term: str) -> str | None:
    """Return the name that a term or relation in the text of a rule is; None for a variable, a template or `type`."""
    if term.startswith("<"):
        return re.sub(r"\\(.)", lambda match: _UNESCAPED.get(match[1], match[1]), term[1:-1])
    return None if VARIABLE.match(term) or TEMPLATE.match(term) or term in RESERVED else term


def names_in(*texts: object) -> list[str]:
    """Return the names of relations and constants in rules or parts of them."""
    terms = (term for text in texts for match in _PART.finditer(str(text)) for term in match.groups()[:5] if term)
    return [name for name in map(_name_in, terms) if name is not None]


def short_text(clause: object, names: Mapping[str, str] | None = None) -> str:
    """Return a rule, a pattern or a part of one as people read it: `worksFor(x,y) ∧ partOf(y,z) → memberOf(x,z)`.

    Parameters
    ----------
    clause
        The rule or part, or its text in our syntax.
    names
        How names are shown; by default short, as long as all of them stay different.
    """
    text = str(clause)
    short = short_names(names_in(text), longest=None) if names is None else names

    def shown(term: str) -> str:
        name = _name_in(term)
        form = term if name is None else short[name]
        # What could be misread as a variable or as two terms is marked.
        return f"<{form}>" if name is not None and _MISLEADING.match(form) else form

    def part(match: re.Match[str]) -> str:
        subject, relation, object_, left, right = (group and shown(group) for group in match.groups()[:5])
        text = f"{relation.strip('<>')}({subject},{object_})" if relation else f"{left}≠{right}"
        return text + _SIGNS[match[6]]

    # A rule without a body begins with its arrow.
    return re.sub(r"^-> ", "→ ", _PART.sub(part, text))


def short_sentences(texts: Iterable[str], labels: Mapping[str, str] | None = None) -> list[str]:
    """Return sentences with short names, all different; rules and their parts are those between backticks."""
    sentences = [pieces if len(pieces := text.split("`")) % 2 else [text] for text in texts]
    names = [name for pieces in sentences for rule in pieces[1::2] for name in names_in(rule)]
    plain = " ".join(piece for pieces in sentences for piece in pieces)
    names += [*IRI_IN_TEXT.findall(plain), *(name for triple in _TRIPLE.findall(plain) for name in triple)]
    short = short_names(names, labels=labels)

    def without_rules(text: str) -> str:
        triples = _TRIPLE.sub(lambda triple: f"({', '.join(short[name] for name in triple.groups())})", text)
        return shortened(triples, short)

    return ["`".join(short_text(p, short) if i % 2 else without_rules(p) for i, p in enumerate(s)) for s in sentences]


def clause_markup(clause: Rule | Pattern, names: Mapping[str, str] | None = None) -> Markup:
    """Return a rule or a pattern, as `short_text` does."""
    short = short_names(names_in(clause)) if names is None else names
    body = [_part(part, short) for part in clause.body]
    conjunction = [piece for part in body for piece in (" ∧ ", part)][1:]
    head = element("span", "→ ", _part(clause.head, short), kind="atom")
    return element("span", *conjunction, " ", head, kind="rule")


def text_markup(text: str, names: Mapping[str, str] | None = None) -> Markup:
    """Return the text of a rule as a rule, and that of a part of one with short names."""
    from loginfer.logic import parse_rule

    try:
        return clause_markup(parse_rule(text), names)
    except LogInferError:
        short = short_text(text, names)
        return element("code", short, title=text if short != text else None)


def prose(text: str) -> Markup:
    """Return a sentence with short names, text between backticks as code."""
    (short,) = short_sentences([text])
    pieces = short.split("`")
    if len(pieces) % 2 == 0:  # an unpaired backtick is part of a name
        pieces = [short]
    spans = [element("code", piece) if i % 2 else joined(piece) for i, piece in enumerate(pieces)]
    return element("span", *spans, title=text if short != text else None)


def triple_markup(triple: tuple[str, str, str], names: Mapping[str, str] | None = None) -> Markup:
    """Return a triple of names."""
    short = short_names(triple) if names is None else names
    kinds = ("constant", "relation", "constant")
    spans = [_name(name, short[name], kind) for name, kind in zip(triple, kinds, strict=True)]
    inside = element("span", "(", spans[0], ", ", spans[1], ", ", spans[2], ")", kind="atom")
    return element("span", inside, kind="rule")


def _part(part: BodyAtom, short: Mapping[str, str]) -> Markup:
    if isinstance(part, Negation):
        return element("span", "not ", _part(part.atom, short), kind="atom")
    if not isinstance(part, Atom):
        return element("span", _term(part.left, short), " ≠ ", _term(part.right, short), kind="atom")
    name = str(part.relation)
    relation = _name(
        name, "type" if part.is_type else short[name] if isinstance(part.relation, str) else name, "relation"
    )
    inside = joined(relation, "(", _term(part.subject, short), ", ", _term(part.object, short), ")")
    return element("span", inside, kind="atom")


def _term(term: Term, short: Mapping[str, str]) -> Markup:
    if isinstance(term, Constant):
        return _name(term.name, short[term.name], "constant")
    return element("span", str(term), kind="variable" if isinstance(term, Variable) else "relation")


def _name(name: str, short: str, kind: str) -> Markup:
    return element("span", short, kind=kind, title=None if short == name else name)
