"""The story of one triple: which sets it is in, which rules derive it, or how it became a negative.

A story is a value. `TripleStory.lines` tells it in sentences, which the terminal prints and notebooks show;
`TripleStory.as_dict` tells it to programs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.negatives import told_near_miss
from loginfer.benchmark.benchmark import POSITIONS, Benchmark, Origins
from loginfer.benchmark.construction.noise import KINDS
from loginfer.benchmark.folder.reading import load_benchmark
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.benchmark.program import Rounds, sub_rule
from loginfer.benchmark.recipe import PARTS
from loginfer.benchmark.shortcut_gate import fits_head
from loginfer.engine import Engine, open_engine_in
from loginfer.engine.binding import relation_of
from loginfer.engine.program import Reason, reason_for
from loginfer.engine.program import explain as one_step_reasons
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import resolve_entity, resolve_relation
from loginfer.logic.rule import Atom, BodyAtom, Negation, Rule, Term, Variable
from loginfer.logic.subrules import EDITS

Names: TypeAlias = tuple[str, str, str]
Ids: TypeAlias = tuple[int, int, int]


class RuleText(str):
    """The text of a rule, or of a part of its body."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a story.

    Parameters
    ----------
    indent
        How far it is indented: it belongs to the line before that is indented less.
    parts
        Texts, among them texts of rules, and triples.
    """

    indent: int
    parts: tuple[str | Names, ...]


@dataclass(frozen=True, slots=True)
class WitnessedPart:
    """A part of a rule's body under a witness.

    Parameters
    ----------
    text
        The atom, inequality or negation, as in the rule.
    holds
        Whether it is true in K; None if the witness leaves one of its variables open.
    kept
        Whether the sub-rule keeps it, or the near miss leaves it as it is.
    triple
        The triple that an atom becomes, or one that a negation denies although it is there; None for another
        part, or with an open variable.
    absent
        Of a negation: what it denies, with variables like `?z` where there is no value.
    """

    text: str
    holds: bool | None
    kept: bool = True
    triple: Names | None = None
    absent: Names | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """A rule that derives the triple, with one witness.

    Parameters
    ----------
    rule
        Index of the rule in the benchmark's rules.
    text
        The rule.
    witness
        Names of constants by variable.
    premises
        The premise triples, in the order of the body.
    missing
        Those of them that are missing from P_train on purpose.
    absent
        What the rule denies: there is no such triple, whatever stands for a variable like `?z`.
    """

    rule: int
    text: str
    witness: dict[str, str]
    premises: tuple[Names, ...]
    missing: tuple[Names, ...] = ()
    absent: tuple[Names, ...] = ()


@dataclass(frozen=True, slots=True)
class DerivationStep:
    """A triple on the way to one that follows in several steps.

    Parameters
    ----------
    triple
        Its names.
    depth
        In how many steps it follows.
    derivation
        A rule and a witness by which it does.
    """

    triple: Names
    depth: int
    derivation: Derivation


@dataclass(frozen=True, slots=True)
class NegativeStory:
    """How a triple became a negative.

    Parameters
    ----------
    method, split
        Whose negative it is.
    source
        `relevance`, `position`, `sub-rule`, `object`, `near-miss` or a registered method's; None if that is not known.
    position
        What was replaced: `subject`, `object` or `either`; None if nothing was, or it is not known.
    replaced
        A positive that it differs from in that position only.
    rule
        The rule whose sub-rule or near miss concludes it, an index of the benchmark's rules.
    sub_rule
        The sub-rule.
    witness
        A witness of the sub-rule.
    parts
        All parts of the whole rule's body under that witness.
    near_miss
        The near miss of the rule that concludes it, with `witness` and `parts` as above.
    edit
        What was done to the rule: `replace`, `reverse`, `drop` or `drop-inequality`.
    edited, instead
        The part of the body to which that was done, and what stands there instead; None if nothing does.
    put
        The triple that `instead` becomes under the witness.
    triple
        The negative, where the story is about the conclusion whose twin it is.
    twin
        The conclusion whose twin it is, if it is one.
    """

    method: str
    split: str
    source: str | None = None
    position: str | None = None
    replaced: Names | None = None
    rule: int | None = None
    sub_rule: str | None = None
    witness: dict[str, str] | None = None
    parts: tuple[WitnessedPart, ...] = ()
    near_miss: str | None = None
    edit: str | None = None
    edited: str | None = None
    instead: str | None = None
    put: Names | None = None
    triple: Names | None = None
    twin: Names | None = None

    def lines(self) -> Iterator[Line]:
        """Yield how it became a negative, in sentences."""
        begin = f"negative by {self.method} for {self.split}"
        if self.triple is not None:
            yield Line(0, ("its twin is ", self.triple, f", a near miss of rule {self.rule} in N_{self.split}"))
            yield from self._near_miss_lines()
            return
        if self.source == "sub-rule" and self.sub_rule is not None and self.rule is not None:
            yield Line(0, (f"{begin}: a conclusion of a sub-rule of rule {self.rule}, ", RuleText(self.sub_rule)))
            yield from self._sub_rule_lines()
        elif self.near_miss is not None:
            yield Line(0, (f"{begin}: a near miss of rule {self.rule}",))
            yield from self._near_miss_lines()
            if self.twin is not None:
                yield Line(2, ("it is the twin of ", self.twin))
        elif self.source == "position":
            positions = {"subject": "the subject", "object": "the object", "either": "subject or object"}
            replaced = positions.get(self.position or "", "a constant")
            yield Line(0, (f"{begin}: a conclusion with {replaced} replaced",))
        elif self.source not in (None, "sub-rule", "near-miss"):  # a registered method has no sentence of its own
            yield Line(0, (f"{begin}: {_SOURCES.get(self.source, self.source)}",))
        else:
            yield Line(0, (f"{begin}; where it came from is not known",))
        if self.replaced:
            yield Line(2, ("made from ", self.replaced))

    def _kept_lines(self, because: str, absent: str) -> Iterator[Line]:
        for part in self.parts:
            if part.kept and part.absent:
                yield Line(2, (f"{absent} there is no ", part.absent))
            elif part.kept and part.triple:
                yield Line(2, (f"{because} ", part.triple))

    def _sub_rule_lines(self) -> Iterator[Line]:
        yield from self._kept_lines("because", "and")
        for part in self.parts:
            if part.absent and part.triple:
                denied = "the rule also asks that there is no "
                yield Line(2, (denied, part.absent, ", but there is ", part.triple))
            elif part.holds is None:
                yield Line(2, ("the rule also asks for ", RuleText(part.text)))
            elif not part.holds:
                required = part.triple or RuleText(part.text)
                yield Line(2, ("the rule also asks for ", required, ", which does not hold"))

    def _near_miss_lines(self) -> Iterator[Line]:
        """Say what would have to be different for the rule to derive the triple."""
        changed = next((part for part in self.parts if not part.kept), None)
        required = changed.triple if changed and changed.triple else RuleText(self.edited or "")
        if changed and changed.absent:
            existing: tuple[str | Names, ...] = ("; there is ", changed.triple) if changed.triple else ()
            denied = "would follow if the rule did not ask that there is no "
            yield Line(2, (denied, changed.absent, *existing))
        elif self.put or self.instead:
            yield Line(2, ("would follow if ", self.put or RuleText(self.instead or ""), " were ", required))
        else:
            yield Line(2, ("would follow if the rule did not ask for ", required))
        yield from self._kept_lines("since", "since")


_SOURCES: dict[str, str] = {
    "relevance": "any constants of the rules' support, with the predicate of a head",
    **{part: f"a positive with a random {part}" for part in PARTS},
}

_NOISE = {
    "flipped-positive": "noise: a conclusion of train that was moved to the negatives",
    "flipped-negative": "noise: a negative of train that was moved to the positives",
    "missing": "noise: a premise that was removed from P_train, though it is true",
}


@dataclass(frozen=True, slots=True)
class TripleStory:
    """Everything a benchmark knows about a triple.

    Parameters
    ----------
    triple
        Its names.
    sets
        The sets it is in: `K`, `P_train`, `P_valid`, `P_test`, `N_train of pa`, …; empty if in none.
    conclusion
        Whether it is one of the conclusions that were distributed; None if that is not known.
    derivations
        The rules that derive it in one step, with witnesses.
    source
        What they derive it from: `K`, or `P_train` where K is not known, or `P_all` for what only follows
        from that. None without derivations.
    negatives
        How it became a negative, for each set of negatives it is in.
    twins
        Of a conclusion: the negatives that are its twins, one for each set of negatives with twins.
    reason
        Why no rule derives it; None if one does, or the rules are not known.
    noise
        What is wrong with it on purpose: `flipped-positive`, `flipped-negative`, `missing`; None if nothing.
    depth
        Where conclusions follow in several steps: in how many this one does; None if it does not.
    steps
        What follows on the way to it, from K on; the last is the triple itself.
    """

    triple: Names
    sets: tuple[str, ...]
    conclusion: bool | None
    derivations: tuple[Derivation, ...] = ()
    source: str | None = None
    negatives: tuple[NegativeStory, ...] = ()
    twins: tuple[NegativeStory, ...] = ()
    reason: str | None = None
    noise: str | None = None
    depth: int | None = None
    steps: tuple[DerivationStep, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the story as plain values, ready for JSON; depth, steps and twins only where there are any."""
        story = asdict(self)
        if self.depth is None:
            del story["depth"], story["steps"]
        if not self.twins:
            del story["twins"]
        for told in (*story["negatives"], *story.get("twins", ())):
            for name in [name for name in ("triple", "twin") if told[name] is None]:
                del told[name]
        return story

    def lines(self) -> Iterator[Line]:
        """Yield the story in sentences."""
        distributed = " (a conclusion that was distributed)" if self.conclusion else ""
        location = f"is in {', '.join(self.sets)}{distributed}" if self.sets else "is in no set of this benchmark"
        yield Line(0, (location,))
        if self.noise:
            yield Line(0, (_NOISE[self.noise],))
        for negative in self.negatives:
            yield from negative.lines()
        has_steps = self.depth is not None and self.depth > 1
        if has_steps:
            yield Line(0, (f"follows in {self.depth} steps",))
        begin = "in the last one" if has_steps else f"follows from {self.source}"
        for derivation in self.derivations:
            yield Line(0, (f"{begin} by rule {derivation.rule}: ", RuleText(derivation.text)))
            for premise in derivation.premises:
                missing = ", a premise missing from P_train" if premise in derivation.missing else ""
                yield Line(2, ("because ", premise, missing))
            for absent in derivation.absent:
                yield Line(2, ("and there is no ", absent))
        if len(self.steps) > 1:
            yield Line(0, ("the whole derivation:",))
            for step in self.steps:
                yield Line(2, (f"{step.depth}. ", step.triple, f" by rule {step.derivation.rule}"))
                for premise in step.derivation.premises:
                    yield Line(7, ("because ", premise))
        for twin in self.twins:
            yield from twin.lines()
        if self.reason:
            yield Line(0, (f"does not follow: {self.reason}",))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.benchmark.notebook import story_fragment

        return story_fragment(self)


class _Witness:
    """Values of some variables of a rule, and what the rule's body becomes with them."""

    def __init__(self, graph: KnowledgeGraph, rule: Rule, values: npt.NDArray[np.int32]) -> None:
        self._graph = graph
        self._names: dict[Term, str] = dict(zip(rule.variables, graph.entities.names(values), strict=True))

    @property
    def names(self) -> dict[str, str]:
        """Names of constants by variable."""
        return {str(term): name for term, name in self._names.items()}

    def triple(self, atom: Atom) -> Names:
        """Return the triple that an atom becomes, with variables like `?z` where there is no value."""
        subject, object_ = (
            self._names.get(term, f"?{term.name}") if isinstance(term, Variable) else term.name for term in atom.terms
        )
        relation = relation_of(atom, self._graph)
        return subject, str(atom.relation) if relation < 0 else self._graph.relations[relation], object_

    def part(self, part: BodyAtom, over: KnowledgeGraph, rule: Rule, kept: bool) -> WitnessedPart:
        """Return a part of a rule's body, and whether it holds in a graph."""
        existential = rule.existential(part) if isinstance(part, Negation) else ()
        is_open = any(variable not in self._names and variable not in existential for variable in part.variables)
        if isinstance(part, Negation):
            denied = None if is_open else self._denied(part, over)
            return WitnessedPart(str(part), None if is_open else denied is None, kept, denied, self.triple(part.atom))
        if is_open:
            return WitnessedPart(str(part), None, kept)
        if not isinstance(part, Atom):
            left, right = (self._names[term] if isinstance(term, Variable) else term.name for term in part.terms)
            return WitnessedPart(str(part), left != right, kept)
        subject, _, object_ = triple = self.triple(part)
        s, r, o = over.entities.get(subject), relation_of(part, over), over.entities.get(object_)
        holds = s is not None and o is not None and r >= 0 and bool(over.contains([[s, r, o]])[0])
        return WitnessedPart(str(part), holds, kept, triple)

    def _denied(self, negation: Negation, over: KnowledgeGraph) -> Names | None:
        """Return the first triple of a graph that a negation denies; None if there is none."""
        triples = over.triples[over.triples[:, 1] == relation_of(negation.atom, over)]
        for column, term in zip((0, 2), negation.terms, strict=True):
            name = self._names.get(term) if isinstance(term, Variable) else term.name
            if name is not None:
                entity = over.entities.get(name)
                triples = triples[triples[:, column] == (-1 if entity is None else entity)]
        if negation.atom.subject == negation.atom.object:
            triples = triples[triples[:, 0] == triples[:, 2]]
        return over.names(triples[:1])[0] if len(triples) else None


# From which all conclusions of several steps follow in one: K, and what follows from it in fewer steps.
_BEFORE = "what follows from K"


def explain(
    benchmark: Benchmark | str | Path, triple: Sequence[str] | Sequence[int], limit: int = 1, *, engine: str = "native"
) -> TripleStory:
    """Tell where a triple is in a benchmark, and why.

    Parameters
    ----------
    benchmark
        The benchmark, or its folder.
    triple
        Subject, relation and object, as ids or as names, of which the last part is enough where that is
        unambiguous.
    limit
        How many witnesses to give for each rule, at most.
    engine
        `native` or `duckdb`.

    Raises
    ------
    UnknownNameError
        For a name that the benchmark does not have, with the nearest ones.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.explain("wn-trian", ("00003316", "_instance_hypernym", "00836788"))  # doctest: +SKIP
    """
    benchmark = load_benchmark(benchmark)
    ids = _ids(benchmark.graph, triple)
    with contextlib.ExitStack() as stack:
        return _Teller(benchmark, ids, limit, engine, stack).tell()


explain_triple = explain


def _ids(graph: KnowledgeGraph, triple: Sequence[str] | Sequence[int]) -> Ids:
    if isinstance(triple, str) or not hasattr(triple, "__len__") or len(triple) != 3:
        raise InputError(f"a triple has three parts, unlike {triple!r}", hint="give (subject, relation, object)")
    s, r, o = triple
    sizes = (len(graph.entities), len(graph.relations), len(graph.entities))
    ids = (
        resolve_entity(graph, s) if isinstance(s, str) else int(s),
        resolve_relation(graph, r) if isinstance(r, str) else int(r),
        resolve_entity(graph, o) if isinstance(o, str) else int(o),
    )
    for part, size in zip(ids, sizes, strict=True):
        if not 0 <= part < size:
            raise InputError(f"there is no name with the id {part}")
    return ids


class _Teller:
    """Tells the story of one triple."""

    def __init__(self, benchmark: Benchmark, triple: Ids, limit: int, engine: str, stack: contextlib.ExitStack) -> None:
        self.original = benchmark
        self.benchmark = benchmark.clean
        self.triple = triple
        self.row = np.array([triple], dtype=np.int32)
        self.limit = limit
        self._engine = engine
        self._stack = stack
        self._engines: dict[str, Engine] = {}

    def tell(self) -> TripleStory:
        """Put the story together."""
        derivations, source = self._derivations()
        return TripleStory(
            triple=self._names(self.triple),
            sets=tuple(self._sets()),
            conclusion=self._is_conclusion(),
            derivations=tuple(derivations),
            source=source,
            negatives=tuple(self._negatives()),
            twins=tuple(self._twins()),
            reason=self._why_not() if self.benchmark.rules and not derivations else None,
            noise=self._noise(),
            depth=self._depth,
            steps=self._steps() if self._depth else (),
        )

    # -- where it is ------------------------------------------------------------------------------

    def _sets(self) -> Iterator[str]:
        kg = self.benchmark.kg
        if kg is not None and kg.contains(self.row)[0]:
            yield "K"
        if self.original.context is not None and self.original.context.contains(self.row)[0]:
            yield "the context graph"
        for split, method, triples in self.original.sets():
            if self._in(triples):
                yield f"P_{split}" if method is None else f"N_{split} of {method}"

    def _noise(self) -> str | None:
        """Return what is wrong with the triple on purpose."""
        noise = self.original.noise
        row = None if noise is None else self._row_of(noise.triples)
        return None if noise is None or row is None else KINDS[noise.kind[row]]

    def _in(self, triples: npt.NDArray[np.int32]) -> bool:
        return self._row_of(triples) is not None

    def _row_of(self, triples: npt.NDArray[np.int32]) -> int | None:
        """Return the row of the triple in a list; None if it is not there."""
        rows = np.flatnonzero((triples == self.row).all(axis=1))
        return int(rows[0]) if len(rows) else None

    def _is_conclusion(self) -> bool | None:
        provenance = self.benchmark.provenance
        return None if provenance is None else self._in(provenance.triples)

    # -- why it is true ---------------------------------------------------------------------------

    @cached_property
    def _rounds(self) -> Rounds:
        """What follows from K, step by step."""
        limit = 0 if self.benchmark.recipe is None else self.benchmark.recipe.max_triples

        def open_engine(graph: KnowledgeGraph) -> Engine:
            return open_engine_in(self._stack, graph, self._engine)

        over_kg, rules = self._over("K"), self.benchmark.program
        return Rounds(over_kg, rules, self.benchmark.depth, open_engine, max_triples=limit)

    @cached_property
    def _depth(self) -> int | None:
        """In how many steps the triple follows, if it takes steps and that is known."""
        if self.benchmark.depth == 1 or self.benchmark.kg is None or not self.benchmark.rules:
            return None
        depth = int(self._rounds.depths(self.row)[0])
        return depth if depth > 0 else None

    def _steps(self) -> tuple[DerivationStep, ...]:
        """Return what follows on the way to the triple, each with the first rule and witness, by depth."""
        rounds, steps = self._rounds, dict[Ids, DerivationStep]()
        pending = [self.triple]
        while pending:
            triple = pending.pop()
            row = np.array([triple], dtype=np.int32)
            depth = int(rounds.depths(row)[0])
            if triple in steps or depth < 1:
                continue
            rule = int(rounds.derivations(row).rule[0])
            witness = rounds.over(depth).witnesses(rounds.rules[rule], limit=1, conclusion=triple).values[0]
            derivation = self._derivation(self._reason_of(rule, witness))
            steps[triple] = DerivationStep(self._names(triple), depth, derivation)
            pending += [_ids(self.benchmark.graph, premise) for premise in derivation.premises]
        return tuple(steps[ids] for ids in sorted(steps, key=lambda ids: (steps[ids].depth, ids)))

    def _over(self, name: str) -> Engine:
        """Return an engine over K, P_train, P_all, or what conclusions of several steps follow from."""
        if name == _BEFORE:
            return self._rounds.last
        if name not in self._engines:
            graph: KnowledgeGraph | None
            if name == "K":
                graph = self.benchmark.kg
            else:
                graph = self.benchmark.seen if name == "P_train" else self.benchmark.everything
            if graph is None:
                raise InputError("K is not known")
            self._engines[name] = open_engine_in(self._stack, graph, self._engine)
        return self._engines[name]

    @property
    def _premises_from(self) -> str:
        if self.benchmark.kg is None:
            return "P_train"
        return "K" if self.benchmark.depth == 1 else _BEFORE

    def _derivations(self) -> tuple[list[Derivation], str | None]:
        recorded = self._recorded()
        source = "K"
        if self._depth and self._depth > 1:
            before = "one step" if self._depth == 2 else f"{self._depth - 1} steps"
            source = f"what follows from K in {before}"
        if recorded and self.limit <= 1:
            return recorded, source
        if self._depth:
            return self._by_engine(self._rounds.over(self._depth)), source
        # What does not follow from K may still follow from the conclusions that were added to it.
        for name in dict.fromkeys((self._premises_from, "P_train", "P_all")):
            derivations = self._by_engine(self._over(name))
            if derivations:
                return derivations, name
        return [], None

    def _recorded(self) -> list[Derivation]:
        """Return the derivations that the provenance records."""
        provenance = self.benchmark.provenance
        row = None if provenance is None else self._row_of(provenance.triples)
        if provenance is None or row is None:
            return []
        derivations = []
        for pair in np.flatnonzero(provenance.conclusion == row).tolist():
            values = provenance.values[provenance.offsets[pair] : provenance.offsets[pair + 1]]
            derivations.append(self._derivation(self._reason_of(int(provenance.rule[pair]), values)))
        return derivations

    def _by_engine(self, engine: Engine) -> list[Derivation]:
        reasons = one_step_reasons(engine, self.benchmark.program, self.triple, limit=self.limit).reasons
        return [self._derivation(reason) for reason in reasons]

    def _derivation(self, reason: Reason) -> Derivation:
        witness = {str(variable): name for variable, name in reason.witness.items()}
        missing = tuple(premise for premise in reason.premises if self._is_missing(premise))
        premises, absent = tuple(reason.premises), tuple(reason.absent)
        return Derivation(reason.place, str(reason.rule), witness, premises, missing, absent)

    def _reason_of(self, number: int, values: npt.NDArray[np.int32]) -> Reason:
        return reason_for(self.benchmark.graph, self.benchmark.program[number], number, values)

    def _is_missing(self, premise: Names) -> bool:
        """Say whether a premise was removed from P_train."""
        if self.original.noise is None:
            return False
        row = np.array([_ids(self.benchmark.graph, premise)], dtype=np.int32)
        return bool((self.original.noise.of("missing") == row).all(axis=1).any())

    def _why_not(self) -> str:
        heads = (rule.head for rule in self.benchmark.program)
        fitting = sum(int(fits_head(head, self.benchmark.graph, self.row)[0]) for head in heads)
        if not fitting:
            return f"none of the {len(self.benchmark.rules):,} rules has this head"
        rules = "one rule has" if fitting == 1 else f"{fitting:,} rules have"
        return f"{rules} this head, but no witness among the positives"

    # -- why it is a negative ---------------------------------------------------------------------

    def _negatives(self) -> Iterator[NegativeStory]:
        for method, negatives in self.benchmark.negatives.items():
            for split, triples in negatives.splits.items():
                row = self._row_of(triples)
                if row is None:
                    continue
                story = NegativeStory(method, split)
                origins = negatives.origins.get(split)
                if origins is not None:
                    source, position = SOURCES[origins.source[row]], POSITIONS[origins.position[row]] or None
                    story = replace(story, source=source, position=position)
                    story = self._with_origin(story, int(origins.rule[row]), int(origins.kept[row]))
                    if story.source == "near-miss":
                        story = self._near_miss(story, origins, row)
                    if origins.twin[row] >= 0:
                        story = replace(story, twin=self._names(self.benchmark.positives[split][origins.twin[row]]))
                yield story

    def _twins(self) -> Iterator[NegativeStory]:
        """Yield the stories of the negatives that are twins of this triple."""
        for method, negatives in self.benchmark.negatives.items():
            for split, origins in negatives.origins.items():
                row = self._row_of(self.benchmark.positives[split])
                for twin in np.flatnonzero(origins.twin == row) if row is not None else ():
                    triple = negatives.splits[split][twin]
                    teller = _Teller(self.original, triple, self.limit, self._engine, self._stack)
                    for story in teller._negatives():
                        if (story.method, story.split) == (method, split):
                            yield replace(story, triple=self._names(triple), twin=None)

    def _with_origin(self, story: NegativeStory, number: int, kept: int) -> NegativeStory:
        if story.source in ("position", *PARTS):
            return replace(story, replaced=self._replaced(story))
        if story.source != "sub-rule" or not 0 <= number < len(self.benchmark.rules):
            return story
        rule = self.benchmark.program[number]
        if kept >> len(rule.body):
            return story  # parts that the rule does not have: the folder is wrong, which an audit finds
        smaller = sub_rule(rule, kept)
        story = replace(story, rule=number, sub_rule=str(smaller))
        if not set(smaller.head.variables) <= set(smaller.variables):
            return story  # nor is that a sub-rule
        witnesses = self._over(self._premises_from).witnesses(smaller, limit=1, conclusion=self.triple)
        if not len(witnesses):
            return story
        witness = _Witness(self.benchmark.graph, smaller, witnesses.values[0])
        over = self._over(self._premises_from).graph
        parts = tuple(witness.part(part, over, rule, bool(kept >> i & 1)) for i, part in enumerate(rule.body))
        return replace(story, witness=witness.names, parts=parts)

    def _near_miss(self, story: NegativeStory, origins: Origins, row: int) -> NegativeStory:
        """Tell with which edit of a rule the triple would follow."""
        columns = (origins.rule, origins.edit, origins.part, origins.predicate)
        origin = tuple(int(column[row]) for column in columns)
        edited = told_near_miss(self.benchmark.graph, self.benchmark.program, origin)
        if edited is None:
            return story  # no rule or no edit: the folder is wrong, which an audit finds
        number, kind, part, _ = origin
        rule = self.benchmark.program[number]
        story = replace(story, rule=number, near_miss=str(edited), edit=EDITS[kind], edited=str(rule.body[part]))
        if not EDITS[kind].startswith("drop"):
            story = replace(story, instead=str(edited.body[part]))
        over = self._over(self._premises_from)
        witnesses = over.witnesses(edited, limit=1, conclusion=self.triple)
        if not len(witnesses):
            return story
        witness = _Witness(self.benchmark.graph, edited, witnesses.values[0])
        parts = tuple(witness.part(body, over.graph, rule, i != part) for i, body in enumerate(rule.body))
        instead = edited.body[part] if story.instead else None
        put = witness.triple(instead) if isinstance(instead, Atom) else None
        return replace(story, witness=witness.names, parts=parts, put=put)

    def _replaced(self, story: NegativeStory) -> Names | None:
        """Return a positive that the triple was made from: for position-aware corruption a conclusion."""
        triples = self.benchmark.positives[story.split]
        fixed = [0, 2] if story.source == "relation" else [1, 2 if story.position in ("subject", "either") else 0]
        candidates = triples[(triples[:, fixed] == np.array(self.triple)[fixed]).all(axis=1)]
        if story.source == "position" and self.benchmark.rules and len(candidates):
            candidates = candidates[self._over(self._premises_from).derives(self.benchmark.program, candidates)]
        return self._names(candidates[0]) if len(candidates) else None

    def _names(self, triple: npt.ArrayLike) -> Names:
        ((s, r, o),) = self.benchmark.graph.names(np.asarray(triple))
        return s, r, o
