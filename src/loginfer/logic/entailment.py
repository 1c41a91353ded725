"""Whether a set of rules M entails a rule r; also for a million path rules.

M entails r if every graph that is closed under M satisfies r; in other words, if on no graph the materialisation of M
makes r's body true but not its head. Materialisation on canonical instances decides it: r's body as a graph, with
fresh constants for its variables.

**Theorem.** M entails r if and only if, for every substitution σ of r's variables that r's inequalities
allow, the materialisation of M on σ(body) contains σ(head). *If:* where σ(body) is part of a materialisation
M(G), so is M(σ(body)), because materialisation is monotone and M(M(G)) = M(G). *Only if:* take σ(body) for G.

**How few σ suffice.** Suppose σ has a derivation of its head, and σ' = h ∘ σ maps elements further
together. The image of the derivation under h derives the head of σ', unless h makes two elements equal
that an inequality *of the derivation* needs to be different: facts and constants are kept by h, and nothing
else can break. So one starts with the σ in which all variables are different and fresh, finds a derivation,
and looks again only where such a pair is identified: two variables, or a variable and a constant. Each of
these is the start of the same search. Without inequalities in M a single instance is enough, whatever
inequalities r has: those only say which instances count, and if the first one is not allowed (x != x),
none is, and r holds trivially.

**Two provers.** The plain one closes an instance fact by fact, for some hundreds of rules of any shape. The
compiled one is for very many rules, most of them path rules given as arrays: bit matrices over the few elements of
an instance. Rules with constants in their heads add elements to an instance, possibly thousands of constants with
facts between any two of them. So constants are added only as they are needed:

1. Leave out every fact about a constant that the instance does not have. What follows now, follows.
2. Let one element ★ stand for all other constants. That is a homomorphism, so all that follows has its image
   among what follows now: a goal that does not follow now, does not follow.
3. Otherwise a derivation of the goal uses ★. Add the constants of its rules as elements of their own and go back
   to 1. At least one of them is new: without ★ the derivation would have been found in step 1.

So this ends with the right answer. But it may take as many rounds as there are constants; with more than some tens
of them the question is left undecided.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, LimitError
from loginfer.kg.graph import Ids, Ints
from loginfer.logic.rule import Atom, Constant, Inequality, Rule, Term, Variable

# No constant, no further atom.
NONE = -1
# Which terms of the head are variables.
BOTH, SUBJECT, OBJECT = 0, 1, 2
# Atoms in a body, at most, of rules that are given as rules.
LONGEST = 3


Prove: TypeAlias = Callable[[Sequence[Atom], Atom], "tuple[Step, ...] | None"]

# From so many rules on it pays to load the compiled kernels.
MANY_RULES = 256

T = TypeVar("T")
R = TypeVar("R")


def entails(rules: Iterable[Rule], rule: Rule) -> bool:
    """Say whether rules entail a rule: on every graph their materialisation satisfies it.

    Parameters
    ----------
    rules
        Datalog rules; inequalities, constants, types and recursion are allowed.
    rule
        The rule in question. One whose body cannot be satisfied is entailed by anything.

    See Also
    --------
    Entailment : for many questions about the same rules, and for derivations.
    """
    return Entailment(rules).entails(rule)


class Entailment:
    """What a set of rules entails.

    Parameters
    ----------
    rules
        The rules.
    compiled
        Whether to use compiled kernels; by default from 256 rules on. The answers are the same.
    """

    def __init__(self, rules: Iterable[Rule], *, compiled: bool | None = None) -> None:
        program = list(rules)
        for rule in program:
            _check(rule)
        self._size = len(program)
        self._prover: PlainProver | CompiledProver
        if compiled or (compiled is None and len(program) >= MANY_RULES):
            self._prover = CompiledProver(*PathRules.of(program))
        else:
            self._prover = PlainProver(program)

    @classmethod
    def of_table(
        cls,
        head: npt.ArrayLike,
        body: npt.ArrayLike,
        *,
        relations: Sequence[str],
        constants: Sequence[str] = (),
        variables: npt.ArrayLike | None = None,
        head_constant: npt.ArrayLike | None = None,
        end_constant: npt.ArrayLike | None = None,
        others: Iterable[Rule] = (),
    ) -> Entailment:
        """Return what path rules given as arrays entail, together with rules of other shapes.

        Parameters
        ----------
        head
            int[m], the relation of each head, an index into `relations`.
        body
            int[m, k], directed relations 2·R + d from one end of the path to the other: d = 0 from subject to
            object, d = 1 from object to subject; -1 behind the last. Rows without a body are ignored.
        relations, constants
            The names, as a list or a vocabulary; `RDF_TYPE` for the relation of type atoms.
        variables
            int[m]: 0 for a head h(X,Y), the path leading from X to Y (the default); 1 for h(X,c) and 2 for
            h(c,X), the path starting at X.
        head_constant, end_constant
            int[m], indices into `constants`: c, and the constant at the end of the path; -1 for none.
        others
            Rules of any shape.
        """
        heads = np.ascontiguousarray(head, dtype=np.int32)
        size = len(heads)

        def column(values: npt.ArrayLike | None, default: int) -> Ids:
            if values is None:
                return np.full(size, default, dtype=np.int32)
            return np.ascontiguousarray(values, dtype=np.int32)

        kinds = column(variables, BOTH).astype(np.int8)
        bodies = np.asarray(body, dtype=np.int32)
        bodies = np.ascontiguousarray(bodies.reshape(size, -1) if size else np.empty((0, 1), dtype=np.int32))
        head_ends, ends = column(head_constant, NONE), column(end_constant, NONE)
        paths = PathRules(heads, kinds, head_ends, ends, bodies, relations, constants)
        entailment = cls.__new__(cls)
        other_rules = list(others)
        for rule in other_rules:
            _check(rule)
        entailment._size = size + len(other_rules)
        entailment._prover = CompiledProver(paths, other_rules)
        return entailment

    def __len__(self) -> int:
        return self._size

    def entails(self, rule: Rule) -> bool:
        """Say whether the rules entail a rule.

        Raises
        ------
        LimitError
            If that depends on too many constants of the rules to be decided.
        """
        if self._prover.has_inequalities:
            return self.counterexample(rule) is None
        (answer,) = self.entails_heads(rule, [rule.head])
        if answer is None:
            raise undecided(rule)
        return answer

    def entails_heads(self, rule: Rule, heads: Sequence[Atom]) -> list[bool | None]:
        """Say for each of several heads whether the rules entail the rule with that head instead of its own.

        Without inequalities in the rules, one materialisation answers for all heads. None means that `entails`
        would not decide it.
        """
        _check(rule)
        variants = [rule if head is rule.head else Rule(rule.body, head) for head in heads]
        if self._prover.has_inequalities:
            return [self._decided(variant) for variant in variants]
        instance = Instance.of(rule)
        if instance is None:
            return [True] * len(heads)
        return self._prover.holds(instance.facts, heads)

    def _decided(self, rule: Rule) -> bool | None:
        try:
            return self.counterexample(rule) is None
        except LimitError:
            return None

    def counterexample(self, rule: Rule) -> Instance | None:
        """Return an instance of a rule's body on which its head does not follow; None if it is entailed."""
        return _failing(rule, self._prover.derive)

    def derivation(self, rule: Rule) -> tuple[Step, ...] | None:
        """Return how the head follows from the body, its variables all different; None if it is not entailed.

        There is no step if the head is part of the body or the body cannot be satisfied, and a single step if
        one is enough. If variables are identified, the derivation may be a different one; `counterexample`
        checks these cases too.
        """
        if self._prover.has_inequalities and self.counterexample(rule) is not None:
            return None
        _check(rule)
        instance = Instance.of(rule)
        if instance is None or instance.goal in instance.facts:
            return ()
        step = self._prover.one_step(instance.facts, instance.goal)
        return (step,) if step else self._prover.derive(instance.facts, instance.goal)

    def one_step(self, rule: Rule) -> bool:
        """Say whether the head follows from the body by a single application of a single rule.

        Where inequalities make several instances necessary, each may need another rule. A head that is part
        of the body follows as well.
        """

        def prove(facts: Sequence[Atom], goal: Atom) -> tuple[Step, ...] | None:
            step = self._prover.one_step(facts, goal)
            return None if step is None else (step,)

        return _failing(rule, prove) is None


def _failing(rule: Rule, prove: Prove) -> Instance | None:
    """Return the first canonical instance without a derivation; see the top of this file."""
    _check(rule)
    first = Instance.of(rule)
    waiting = [] if first is None else [first]
    seen = {first}
    while waiting:
        instance = waiting.pop()
        facts, goal = instance.facts, instance.goal
        if goal in facts:
            continue
        steps = prove(facts, goal)
        if steps is None:
            return instance
        for left, right in used_inequalities(steps):
            merged = instance.identified(left, right)
            if merged is not None and merged not in seen:
                seen.add(merged)
                waiting.append(merged)
    return None


def _check(rule: Rule) -> None:
    if not isinstance(rule, Rule):
        raise InputError(f"`{rule}` is not a rule", hint="parse_rule makes one from its text")
    if rule.negations:
        hint = "the test by canonical instances is not complete for negation as failure"
        raise InputError(f"entailment is for rules without negation, not for `{rule}`", hint=hint)


# -- canonical instances and derivations ---------------------------------------------------------


class Step(NamedTuple):
    """One step of a derivation: a rule, what it was applied to, and what it concludes.

    Parameters
    ----------
    rule
        The rule.
    premises
        The atoms of its body, in their order, with the terms of the canonical instance.
    conclusion
        Its head, likewise.
    """

    rule: Rule
    premises: tuple[Atom, ...]
    conclusion: Atom

    def __str__(self) -> str:
        premises = ", ".join(map(str, self.premises))
        return f"{premises} -> {self.conclusion}  by  {self.rule}"


@dataclass(frozen=True)
class Instance:
    """A canonical instance of a rule.

    A frozen variable is the variable itself: it differs from every constant and every other variable, and a
    derivation reads as the rule does. Variables that are identified are replaced by the first of them, or by
    the constant they are identified with.

    Parameters
    ----------
    rule
        The rule.
    names
        For each of `rule.variables` the term that stands for it.
    """

    rule: Rule
    names: tuple[Term, ...]

    @classmethod
    def of(cls, rule: Rule) -> Instance | None:
        """Return the instance in which all variables differ; None if the body cannot be satisfied."""
        return cls(rule, rule.variables)._allowed()

    def identified(self, left: Term, right: Term) -> Instance | None:
        """Return the instance in which two terms are one, if that and the rule's inequalities allow it."""
        if isinstance(left, Constant) and isinstance(right, Constant):
            return None
        if isinstance(right, Constant) or (
            isinstance(left, Variable) and self.names.index(right) < self.names.index(left)
        ):
            left, right = right, left
        return Instance(self.rule, tuple(left if name == right else name for name in self.names))._allowed()

    def _allowed(self) -> Instance | None:
        if self.rule.inequalities:
            names = self._renaming()
            for part in self.rule.inequalities:
                left, right = part.rename(names).terms
                if left == right:
                    return None
        return self

    def _renaming(self) -> dict[Term, Term]:
        return dict(zip(self.rule.variables, self.names, strict=True))

    @property
    def facts(self) -> tuple[Atom, ...]:
        """The body without its inequalities; each atom once."""
        if self.names == self.rule.variables:
            return tuple(dict.fromkeys(self.rule.atoms))
        names = self._renaming()
        return tuple(dict.fromkeys(atom.rename(names) for atom in self.rule.atoms))

    @property
    def goal(self) -> Atom:
        """The head."""
        return self.rule.head.rename(self._renaming())

    @property
    def identifications(self) -> dict[Variable, Term]:
        """The variables that another term stands for."""
        pairs = zip(self.rule.variables, self.names, strict=True)
        return {variable: name for variable, name in pairs if variable != name}


def used_inequalities(steps: tuple[Step, ...]) -> list[tuple[Term, Term]]:
    """Return the pairs of terms that the inequalities of a derivation need to be different."""
    pairs: dict[tuple[Term, Term], None] = {}
    for rule, premises, _ in steps:
        if not rule.inequalities:
            continue
        names: dict[Term, Term] = {}
        for atom, premise in zip(rule.atoms, premises, strict=True):
            names.update(zip(atom.terms, premise.terms, strict=True))
        for part in rule.inequalities:
            left, right = part.rename(names).terms
            if (right, left) not in pairs:
                pairs[left, right] = None
    return list(pairs)


def undecided(what: Rule | Atom) -> LimitError:
    """Return the error for a question that depends on too many constants."""
    hint = "leave out the rules with constants, or those of low confidence"
    return LimitError(f"whether `{what}` follows depends on too many constants of the rules to be decided", hint=hint)


# -- the plain prover ------------------------------------------------------------------------------

# Facts that one materialisation may have.
MANY_FACTS = 500_000


class PlainProver:
    """Derives what follows from a set of facts by rules.

    Parameters
    ----------
    rules
        The rules.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = [rule for rule in rules if _satisfiable(rule)]
        self.has_inequalities = any(rule.inequalities for rule in self.rules)
        self._ground = [rule for rule in self.rules if not rule.atoms]
        self._by_relation: dict[str, list[tuple[Rule, int]]] = defaultdict(list)
        for rule in self.rules:
            for i, atom in enumerate(rule.atoms):
                self._by_relation[str(atom.relation)].append((rule, i))

    def derive(self, facts: Sequence[Atom], goal: Atom) -> tuple[Step, ...] | None:
        """Return the steps that lead to a goal, or None if it does not follow."""
        reasons = self._close(facts, {goal})
        return derivation(reasons, goal) if goal in reasons else None

    def holds(self, facts: Sequence[Atom], goals: Sequence[Atom]) -> list[bool | None]:
        """Return which goals follow; None, which this prover never returns, means undecided."""
        reasons = self._close(facts, set(goals))
        return [goal in reasons for goal in goals]

    def one_step(self, facts: Sequence[Atom], goal: Atom) -> Step | None:
        """Return a step that concludes the goal from the facts alone."""
        index = _Index()
        for fact in facts:
            index.add(fact)
        for rule in self.rules:
            if rule.head.relation != goal.relation:
                continue
            names = _match(rule.head, goal, {})
            for match in () if names is None else index.joined(rule, names):
                return _step(rule, match)
        return None

    def _close(self, facts: Iterable[Atom], goals: set[Atom]) -> dict[Atom, Step | None]:
        """Return what follows until all goals do, each with the step that derives it; None for given facts."""
        reasons: dict[Atom, Step | None] = dict.fromkeys(facts)
        index = _Index()
        missing = goals.difference(reasons)
        waiting = deque(reasons)
        steps = [_step(rule, {}) for rule in self._ground]
        while missing:
            for step in steps:
                if step.conclusion not in reasons:
                    reasons[step.conclusion] = step
                    missing.discard(step.conclusion)
                    waiting.append(step.conclusion)
            if not waiting:
                break
            if len(reasons) > MANY_FACTS:
                hint = "rules with constants in their heads do that; leave out those that are not needed"
                raise LimitError(f"more than {MANY_FACTS:,} facts follow from the body of the rule", hint=hint)
            fact = waiting.popleft()
            index.add(fact)
            steps = self._consequences(fact, index)
        return reasons

    def _consequences(self, fact: Atom, index: _Index) -> list[Step]:
        """Return the steps that use a fact and earlier ones."""
        steps = []
        for rule, i in self._by_relation.get(str(fact.relation), ()):
            names = _match(rule.atoms[i], fact, {})
            if names is not None:
                steps += [_step(rule, names) for names in index.joined(rule, names, without=i)]
        return steps


class _Index:
    """Facts by relation, and by relation and one end."""

    def __init__(self) -> None:
        self._facts: dict[object, list[Atom]] = defaultdict(list)

    def add(self, fact: Atom) -> None:
        self._facts[fact.relation].append(fact)
        self._facts[fact.relation, 0, fact.subject].append(fact)
        self._facts[fact.relation, 1, fact.object].append(fact)

    def _candidates(self, atom: Atom, names: dict[Term, Term]) -> list[Atom]:
        key: object = atom.relation
        for side, term in enumerate(atom.terms):
            if not isinstance(term, Variable) or term in names:
                key = (atom.relation, side, names.get(term, term))
                break
        return self._facts.get(key, [])

    def joined(self, rule: Rule, names: dict[Term, Term], i: int = 0, without: int = -1) -> Iterator[dict[Term, Term]]:
        """Yield the ways to make a rule's body true that agree with `names`."""
        if i == len(rule.atoms):
            if all(names.get(p.left, p.left) != names.get(p.right, p.right) for p in rule.inequalities):
                yield names
        elif i == without:
            yield from self.joined(rule, names, i + 1, without)
        else:
            atom = rule.atoms[i]
            for fact in self._candidates(atom, names):
                extended = _match(atom, fact, names)
                if extended is not None:
                    yield from self.joined(rule, extended, i + 1, without)


def _match(atom: Atom, fact: Atom, names: dict[Term, Term]) -> dict[Term, Term] | None:
    """Return the names under which an atom is a fact of its relation."""
    for term, value in zip(atom.terms, fact.terms, strict=True):
        if not isinstance(term, Variable):
            if term != value:
                return None
        elif names.get(term, value) != value:
            return None
        elif term not in names:
            names = {**names, term: value}
    return names


def _step(rule: Rule, names: dict[Term, Term]) -> Step:
    return Step(rule, tuple(atom.rename(names) for atom in rule.atoms), rule.head.rename(names))


def _satisfiable(rule: Rule) -> bool:
    return all(part.left != part.right for part in rule.inequalities)


def derivation(reasons: dict[Atom, Step | None], goal: Atom) -> tuple[Step, ...]:
    """Return the steps that lead to a goal, each after those it needs.

    Parameters
    ----------
    reasons
        Facts in the order in which they were derived, each with its step; None for given facts.
    goal
        One of them.
    """
    needed: dict[Atom, Step] = {}
    waiting = [goal]
    while waiting:
        fact = waiting.pop()
        step = reasons[fact]
        if step is not None and fact not in needed:
            needed[fact] = step
            waiting += step.premises
    return tuple(step for fact in reasons if (step := needed.get(fact)) is not None)


# -- path rules as arrays --------------------------------------------------------------------------


def path_atoms(
    row: Sequence[int], x: T, y: T, between: Sequence[T], relation: Callable[[int], R], constant: Callable[[int], T]
) -> list[tuple[T, R, T]]:
    """Return the atoms of a path rule as subject, relation and object, the head first.

    Parameters
    ----------
    row
        Head, variables, head constant, end constant and steps, as in `PathRules`.
    x, y, between
        What stands for the head's variables, and for those along the path.
    relation, constant
        Give what stands for an id.
    """
    head, variables, head_constant, end_constant, *steps = row
    steps = [step for step in steps if step != NONE]
    subject, object_, last = x, y, y
    if variables != BOTH:
        last = between[len(steps) - 1] if end_constant == NONE else constant(end_constant)
        if variables == OBJECT:
            subject = constant(head_constant)
        else:
            object_ = constant(head_constant)
    atoms = [(subject, relation(head), object_)]
    start = y if variables == OBJECT else x
    for number, step in enumerate(steps, 1):
        end = between[number - 1] if number < len(steps) else last
        atoms.append((end, relation(step >> 1), start) if step & 1 else (start, relation(step >> 1), end))
        start = end
    return atoms


@dataclass(frozen=True)
class PathRules:
    """Rules whose bodies are paths, as codes.

    Parameters
    ----------
    head
        int32[m], the head's relation R.
    variables
        int8[m]: BOTH for h(X,Y), where the path leads from X to Y; SUBJECT for h(X,c) and OBJECT for h(c,X),
        where it starts at X.
    head_constant, end_constant
        int32[m]: c, and the constant at the end of the path of h(X,c) or h(c,X); NONE where there is none.
    body
        int32[m, k], directed relations 2·R + d: with d = 0 a step goes from subject to object, with d = 1
        from object to subject. NONE behind the last. A row without any is no rule and is ignored.
    relations, constants
        The names.
    """

    head: Ids
    variables: npt.NDArray[np.int8]
    head_constant: Ids
    end_constant: Ids
    body: Ids
    relations: Sequence[str]
    constants: Sequence[str]
    texts: Callable[[int], Rule] | None = None

    def __post_init__(self) -> None:
        size = len(self.head)
        for name in ("variables", "head_constant", "end_constant", "body"):
            if len(getattr(self, name)) != size:
                raise InputError(f"`{name}` has {len(getattr(self, name))} rows, `head` has {size}")
        if not size:
            return
        for name, limit, least in (
            ("head", len(self.relations), 0),
            ("body", 2 * len(self.relations), NONE),
            ("variables", OBJECT + 1, BOTH),
            ("head_constant", len(self.constants), NONE),
            ("end_constant", len(self.constants), NONE),
        ):
            column = getattr(self, name)
            if column.size and (int(column.min()) < least or int(column.max()) >= limit):
                raise InputError(f"a code in `{name}` is not between {least} and {limit - 1}")
        if bool(((self.variables != BOTH) & (self.head_constant == NONE)).any()):
            raise InputError("a rule with one variable in its head has no `head_constant`")

    def __len__(self) -> int:
        return len(self.head)

    def rule(self, number: int) -> Rule:
        """Return one of the rules."""
        if self.texts is not None:
            return self.texts(number)
        steps = self.body[number].tolist()
        columns = (self.head, self.variables, self.head_constant, self.end_constant)
        row = (*(int(column[number]) for column in columns), *steps)
        # A path leads from x to y, whichever term of the head x is.
        x: Term = Variable("x")
        y: Term = Variable("y")
        between: list[Term] = [*(Variable(f"a{i}") for i in range(1, len(steps) - steps.count(NONE))), y]

        def constant(number: int) -> Term:
            return Constant(self.constants[number])

        ends = (x, y) if row[1] == BOTH else (x, x)
        head, *body = (Atom(*part) for part in path_atoms(row, *ends, between, self.relations.__getitem__, constant))
        return Rule(body, head)

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> tuple[PathRules, list[Rule]]:
        """Split rules into path rules of up to three atoms and others."""
        relations: dict[str, int] = {}
        constants: dict[str, int] = {}
        rows: list[list[int]] = []
        originals: list[Rule] = []
        others: list[Rule] = []

        def constant(atom: Atom) -> int:
            names = [term.name for term in atom.terms if isinstance(term, Constant)]
            return constants.setdefault(names[0], len(constants)) if names else NONE

        for rule in rules:
            atoms = rule.atoms
            shape = None
            if atoms and not (rule.inequalities or rule.negations):
                shape = path_shape(variable_names(rule.head), [variable_names(atom) for atom in atoms])
            if shape is None:
                others.append(rule)
                continue
            codes = [2 * relations.setdefault(str(atoms[i].relation), len(relations)) + d for i, d in shape.steps]
            codes += [NONE] * (LONGEST - len(codes))
            head = relations.setdefault(str(rule.head.relation), len(relations))
            head_constant = constant(rule.head)
            end = constant(atoms[shape.steps[-1][0]]) if shape.end else NONE
            rows.append([head, shape.variables, head_constant, end, *codes])
            originals.append(rule)
        table = np.array(rows, dtype=np.int32).reshape(-1, 4 + LONGEST)
        head_, kinds, heads, ends = (np.ascontiguousarray(column) for column in table[:, :4].T)
        body = np.ascontiguousarray(table[:, 4:])
        path_rules = cls(
            head_, kinds.astype(np.int8), heads, ends, body, list(relations), list(constants), originals.__getitem__
        )
        return path_rules, others


# The names of an atom's variables, subject and object; None for a constant.
VariableNames: TypeAlias = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class PathShape:
    """How the atoms of a rule make a path.

    Parameters
    ----------
    variables
        Which ends of the head are variables: BOTH, SUBJECT or OBJECT.
    steps
        The atoms of the body in the order of the path: index in the body, and the direction of the step.
    end
        Whether the path ends in a constant.
    """

    variables: int
    steps: tuple[tuple[int, int], ...]
    end: bool


def path_shape(head: VariableNames, body: Sequence[VariableNames]) -> PathShape | None:
    """Return how a rule's atoms make a path, or None if they do not.

    Variables may have any names, atoms any order and direction.
    """
    subject, object_ = head
    if len(body) > LONGEST or subject == object_ or (None not in head and not body):
        return None
    variables = OBJECT if subject is None else SUBJECT if object_ is None else BOTH
    start, goal = (object_, None) if subject is None else (subject, object_)
    for order in permutations(range(len(body))):
        steps = _steps_along(start, goal, body, order)
        if steps is not None:
            return PathShape(variables, steps, bool(body) and None in body[order[-1]])
    return None


def _steps_along(
    start: str | None, goal: str | None, body: Sequence[VariableNames], order: tuple[int, ...]
) -> tuple[tuple[int, int], ...] | None:
    """Go along the atoms in one order; None where they do not hang together, or meet a variable twice."""
    variable, visited, steps = start, {start}, []
    for number, i in enumerate(order):
        direction = 0 if body[i][0] == variable else 1
        if body[i][direction] != variable:
            return None
        variable = body[i][1 - direction]
        last = number == len(order) - 1
        if variable in visited or (variable is None and not (last and goal is None)):
            return None
        if goal is not None and (variable == goal) != last:
            return None
        visited.add(variable)
        steps.append((i, direction))
    return tuple(steps)


def variable_names(atom: Atom) -> VariableNames:
    """Return the names of an atom's variables."""
    subject, object_ = (term.name if isinstance(term, Variable) else None for term in atom.terms)
    return subject, object_


# -- the compiled prover ---------------------------------------------------------------------------

# A fact: relation, subject, object.
Fact: TypeAlias = tuple[int, int, int]

# Elements that a bit matrix can hold, ★ included.
MAX_ELEMENTS = 62
# The name of ★; it never leaves this file.
_STAR = Constant("★")


@dataclass(frozen=True)
class _Run:
    """A materialisation that has stopped.

    Parameters
    ----------
    elements
        The terms, by number; ★ last if it takes part.
    missing
        How many goals were not reached.
    rows, why, when
        As `entailment_kernels.close` leaves them.
    """

    elements: list[Term]
    missing: int
    rows: Ints
    why: Ids
    when: Ids

    def has(self, fact: Fact) -> bool:
        return bool(self.rows[2 * fact[0], fact[1]] >> fact[2] & 1)


class CompiledProver:
    """Derives what follows from a set of facts by path rules and rules of other shapes.

    Parameters
    ----------
    paths
        Path rules.
    others
        Rules of any shape.
    """

    def __init__(self, paths: PathRules, others: Sequence[Rule] = ()) -> None:
        self._paths = paths
        self._others = [rule for rule in others if _satisfiable(rule)]
        self.has_inequalities = any(rule.inequalities for rule in self._others)
        self._relations: dict[str, int] = {name: i for i, name in enumerate(paths.relations)}
        self._extra: dict[str, int] = {}
        for rule in self._others:
            for atom in rule:
                self._relations.setdefault(str(atom.relation), len(self._relations))
            for name in rule.constants:
                if self._constant_code(name) is None:
                    self._extra[name] = len(paths.constants) + len(self._extra)
        # Whether rules can add constants to an instance.
        self._introduces = bool((paths.variables != BOTH).any()) or any(
            isinstance(term, Constant) for rule in self._others for term in rule.head.terms
        )

    # -- questions ---------------------------------------------------------------------------------

    def derive(self, facts: Sequence[Atom], goal: Atom) -> tuple[Step, ...] | None:
        """Return the steps that lead to a goal, or None if it does not follow.

        Raises
        ------
        LimitError
            If that cannot be decided, see the top of this file.
        """
        if goal in facts:
            return ()
        if self._is_too_large(facts, [goal]):
            return self._plain.derive(facts, goal)
        (run,) = self._settled(facts, [goal], layered=True)
        if run is None:
            raise undecided(goal)
        return self._steps(run, goal) if isinstance(run, _Run) else None

    def holds(self, facts: Sequence[Atom], goals: Sequence[Atom]) -> list[bool | None]:
        """Return which goals follow; None where that cannot be decided."""
        if self._is_too_large(facts, goals):
            return self._plain.holds(facts, goals)
        open_goals = [goal for goal in dict.fromkeys(goals) if goal not in facts]
        runs = dict(zip(open_goals, self._settled(facts, open_goals), strict=True))
        answers = {goal: None if run is None else isinstance(run, _Run) for goal, run in runs.items()}
        return [answers.get(goal, True) for goal in goals]

    def one_step(self, facts: Sequence[Atom], goal: Atom) -> Step | None:
        """Return a step that concludes the goal from the facts alone; the goal must not be one of them."""
        if self._is_too_large(facts, [goal]):
            return self._plain.one_step(facts, goal)
        if str(goal.relation) not in self._relations:
            return None
        run = self._run(_terms(facts, [goal]), facts, [goal], single=True)
        return None if run.missing else self._step(run, self._fact(goal, run.elements))

    def _settled(self, facts: Sequence[Atom], goals: Sequence[Atom], layered: bool = False) -> list[_Run | bool | None]:
        """Return for each goal a run that reaches it; False if none can; None if that is not decided.

        With `layered`, its derivations are not deeper than they need be, which takes longer.
        """
        answers: dict[Atom, _Run | bool | None] = dict.fromkeys(goals, False)
        open_ = [goal for goal in goals if str(goal.relation) in self._relations]
        elements = _terms(facts, goals)
        while open_:
            run = self._run(elements, facts, open_, layered=layered)
            reached = self._reached(run, open_)
            answers.update(dict.fromkeys(reached, run))
            open_ = [goal for goal in open_ if goal not in reached]
            if not open_ or not self._introduces:
                break
            open_ = self._reached(self._run(elements, facts, open_, star=True), open_)
            if not open_:
                break
            if len(elements) == MAX_ELEMENTS - 1:
                answers.update(dict.fromkeys(open_, None))
                break
            # A short derivation needs few further constants.
            run = self._run(elements, facts, open_[:1], star=True, layered=True)
            elements = [*elements, *self._needed_constants(run, open_[0], elements)][: MAX_ELEMENTS - 1]
        return [answers[goal] for goal in goals]

    def _needed_constants(self, run: _Run, goal: Atom, elements: Sequence[Term]) -> list[Term]:
        """Return the constants that the derivation of a goal with ★ uses and that are not elements yet."""
        rules = [step.rule for step in self._steps(run, goal)]
        used = dict.fromkeys(Constant(name) for rule in rules for name in rule.constants)
        return [constant for constant in used if constant not in elements]

    def _reached(self, run: _Run, goals: Sequence[Atom]) -> list[Atom]:
        return [goal for goal in goals if run.has(self._fact(goal, run.elements))]

    # -- materialisation ---------------------------------------------------------------------------

    def _run(
        self,
        elements: list[Term],
        facts: Sequence[Atom],
        goals: Sequence[Atom],
        *,
        star: bool = False,
        single: bool = False,
        layered: bool = False,
    ) -> _Run:
        from loginfer.logic.entailment_kernels import close

        relations = len(self._relations)
        numbers = {term: i for i, term in enumerate(elements)}
        relevant = [f for f in facts if str(f.relation) in self._relations]
        element_of = self._element_of
        inside = [(code, i) for term, i in numbers.items() if (code := self._constant(term)) is not None]
        for code, i in inside:
            element_of[code] = i
        n = len(elements) + star
        rows = np.zeros((2 * relations, n), dtype=np.int64)
        derived = np.zeros_like(rows) if layered else rows
        why = np.empty((relations, n, n), dtype=np.int32)
        when = np.empty((relations, n, n), dtype=np.int32)
        cyclic, open_, ends, general = self._indexes
        starts_only = star and not inside and self._one_atom
        if starts_only:
            open_, ends = self._starred
        missing = close(
            cyclic,
            open_,
            ends,
            general,
            len(self._paths),
            element_of,
            n - 1 if star else -1,
            n,
            self._coded(relevant, numbers),
            self._coded(goals, numbers),
            rows,
            derived,
            why,
            when,
            star or bool(inside),
            starts_only,
            single,
            layered,
        )
        for code, _ in inside:
            element_of[code] = -1
        return _Run([*elements, _STAR] if star else elements, int(missing), derived, why, when)

    def _coded(self, atoms: Sequence[Atom], numbers: dict[Term, int]) -> Ids:
        rows = [(self._relations[str(a.relation)], numbers[a.subject], numbers[a.object]) for a in atoms]
        return np.array(rows, dtype=np.int32).reshape(-1, 3)

    @cached_property
    def _element_of(self) -> Ids:
        return np.full(len(self._paths.constants) + len(self._extra) + 1, -1, dtype=np.int32)

    @cached_property
    def _indexes(self) -> tuple[Any, ...]:
        from loginfer.logic.entailment_kernels import index_paths

        paths = self._paths
        has_body = paths.body[:, 0] != NONE if paths.body.shape[1] else np.zeros(len(paths), dtype=bool)
        cyclic = paths.variables == BOTH
        body = np.ascontiguousarray(paths.body, dtype=np.int32)
        indexes = [
            index_paths(paths.head, body, np.flatnonzero(which & has_body).astype(np.int32), len(self._relations))
            for which in (cyclic, ~cyclic)
        ]
        return (*indexes, self._ends(indexes[1][3]), self._general())

    @cached_property
    def _starred(self) -> tuple[Any, Any]:
        """Return index and ends of acyclic rules for runs in which ★ is the only constant.

        Rules that differ only in their constants conclude the same there: one of each kind is enough.
        """
        from loginfer.logic.entailment_kernels import index_paths

        paths = self._paths
        acyclic = np.flatnonzero((paths.variables != BOTH) & (paths.body[:, 0] != NONE))
        what = paths.head[acyclic].astype(np.int64) * 4 + 2 * (paths.variables[acyclic] - 1)
        what = (what + (paths.end_constant[acyclic] >= 0)) * 2 * len(self._relations)
        first = np.unique(what + paths.body[acyclic, 0], return_index=True)[1]
        representatives = np.sort(acyclic[first]).astype(np.int32)
        index = index_paths(paths.head, paths.body, representatives, len(self._relations))
        return index, self._ends(index[3])

    def _ends(self, rules: Ids) -> tuple[Any, Any, Any]:
        paths = self._paths
        return paths.variables[rules], paths.head_constant[rules], paths.end_constant[rules]

    @cached_property
    def _one_atom(self) -> bool:
        """Whether the bodies of all acyclic rules have one atom."""
        acyclic = self._paths.variables != BOTH
        return not bool((self._paths.body[acyclic, 1:] != NONE).any())

    def _general(self) -> tuple[Ids, Ids, Ids, Ids, Ids]:
        """Return the other rules as arrays, see `entailment_kernels.close`."""
        heads: list[tuple[int, int, int, int]] = []
        offsets = [0]
        parts: list[tuple[int, int, int, int]] = []
        listed: dict[int, list[int]] = defaultdict(list)
        for number, rule in enumerate(self._others):
            codes: dict[Term, int] = {variable: i for i, variable in enumerate(rule.variables)}

            def code(term: Term, codes: dict[Term, int] = codes) -> int:
                return codes[term] if isinstance(term, Variable) else ~self._code(term)

            for part in rule.body:
                ends = [code(term) for term in part.terms]
                if isinstance(part, Inequality) and max(ends) < 0:
                    continue  # two constants: they differ, since the rule is satisfiable
                relation = self._relations[str(part.relation)] if isinstance(part, Atom) else -1
                parts.append((relation, ends[0], ends[1], max(*ends, -1)))
            offsets.append(len(parts))
            head = self._relations[str(rule.head.relation)]
            heads.append((head, code(rule.head.subject), code(rule.head.object), len(codes)))
            body_relations = {self._relations[str(atom.relation)] for atom in rule.atoms} or {len(self._relations)}
            for relation in body_relations:
                listed[relation].append(number)
        by_relation = np.cumsum([0, *(len(listed[r]) for r in range(len(self._relations) + 1))])
        rules = [number for r in range(len(self._relations) + 1) for number in listed[r]]
        return (
            np.array(heads, dtype=np.int32).reshape(-1, 4),
            np.array(offsets, dtype=np.int32),
            np.array(parts, dtype=np.int32).reshape(-1, 4),
            by_relation.astype(np.int32),
            np.array(rules, dtype=np.int32),
        )

    # -- names -------------------------------------------------------------------------------------

    @cached_property
    def _constants(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._paths.constants)}

    def _constant_code(self, name: str) -> int | None:
        look = getattr(self._paths.constants, "get", None)  # a vocabulary finds names without a dictionary
        code = look(name) if look is not None else self._constants.get(name)
        return self._extra.get(name) if code is None else code

    def _constant(self, term: Term) -> int | None:
        return self._constant_code(term.name) if isinstance(term, Constant) else None

    def _code(self, term: Term) -> int:
        code = self._constant(term)
        if code is None:
            raise KeyError(term)
        return code

    def _fact(self, atom: Atom, elements: list[Term]) -> Fact:
        relation = self._relations[str(atom.relation)]
        return relation, elements.index(atom.subject), elements.index(atom.object)

    def _atom(self, fact: Fact, elements: list[Term]) -> Atom:
        return Atom(elements[fact[1]], self._relation_names[fact[0]], elements[fact[2]])

    @cached_property
    def _relation_names(self) -> list[str]:
        return list(self._relations)

    def _rule(self, number: int) -> Rule:
        return self._paths.rule(number) if number < len(self._paths) else self._others[number - len(self._paths)]

    # -- derivations -------------------------------------------------------------------------------

    def _steps(self, run: _Run, goal: Atom) -> tuple[Step, ...]:
        reasons: dict[Atom, Step | None] = {}
        steps: dict[Fact, Step] = {}
        waiting = [self._fact(goal, run.elements)]
        facts: set[Fact] = set()
        while waiting:
            fact = waiting.pop()
            if fact in facts:
                continue
            facts.add(fact)
            if run.why[fact] >= 0:
                steps[fact] = self._step(run, fact)
                waiting += [self._fact(premise, run.elements) for premise in steps[fact].premises]
        for fact in sorted(facts, key=lambda f: (int(run.when[f]), f)):
            reasons[self._atom(fact, run.elements)] = steps.get(fact)
        return derivation(reasons, goal)

    def _step(self, run: _Run, fact: Fact) -> Step:
        """Return how a fact was derived from earlier ones."""
        rule = self._rule(int(run.why[fact]))
        numbers = {term: i for i, term in enumerate(run.elements)}
        star = len(run.elements) - 1 if run.elements[-1] is _STAR else -1
        values: dict[Term, int] = {}
        for part in (*rule.body, rule.head):
            for term in part.terms:
                if isinstance(term, Constant):
                    # A constant that is no element occurs in inequalities only: it differs from all elements.
                    values[term] = numbers.get(term, star)
        values.update(zip(rule.head.terms, fact[1:], strict=True))
        for witness in self._witnesses(run, rule, 0, values, int(run.when[fact])):
            if all(_differ(witness[p.left], witness[p.right], star) for p in rule.inequalities):
                names: dict[Term, Term] = {term: run.elements[i] for term, i in witness.items() if i >= 0}
                premises = tuple(atom.rename(names) for atom in rule.atoms)
                return Step(rule, premises, self._atom(fact, run.elements))
        raise RuntimeError(f"no witness of `{rule}` for a fact that it derived")

    def _witnesses(
        self, run: _Run, rule: Rule, i: int, values: dict[Term, int], before: int
    ) -> Iterator[dict[Term, int]]:
        if i == len(rule.atoms):
            yield values
            return
        atom = rule.atoms[i]
        relation = self._relations[str(atom.relation)]
        all_elements = range(len(run.elements))
        for subject in (values[atom.subject],) if atom.subject in values else all_elements:
            bound = {**values, atom.subject: subject}
            for object_ in (bound[atom.object],) if atom.object in bound else all_elements:
                fact = (relation, subject, object_)
                if run.has(fact) and run.when[fact] < before:
                    yield from self._witnesses(run, rule, i + 1, {**bound, atom.object: object_}, before)

    # -- instances that are too large for a bit matrix ------------------------------------------------

    def _is_too_large(self, facts: Sequence[Atom], goals: Sequence[Atom]) -> bool:
        return len(_terms(facts, goals)) >= MAX_ELEMENTS

    @cached_property
    def _plain(self) -> PlainProver:
        paths = [self._paths.rule(i) for i in range(len(self._paths)) if (self._paths.body[i] >= 0).any()]
        return PlainProver([*paths, *self._others])


def _terms(facts: Sequence[Atom], goals: Sequence[Atom]) -> list[Term]:
    return list(dict.fromkeys(term for atom in (*facts, *goals) for term in atom.terms))


def _differ(left: int, right: int, star: int) -> bool:
    return left != right or left in (-1, star)
