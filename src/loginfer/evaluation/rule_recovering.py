"""Were the rules of a benchmark found? Section 5.4: which of them mined rules entail, beside what chance would entail.

Mined rules come from a rule file in any dialect, or from the run of a miner. They are taken as plain Datalog, as the
files say and as the paper does: variables may stand for the same entity, although AnyBURL and RuleN apply their rules
to different ones only. Zero rules are no Datalog rules and are passed over. Each share stands beside its controls,
because a large rule set entails nearly anything: a single step instead of the closure, and the same bodies with
random heads. ε_cont counts the rules that were mined as they are, up to renaming and atom order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loginfer.benchmark.benchmark import Benchmark
from loginfer.engine.binding import relation_named
from loginfer.errors import InputError, LimitError, LogInferError
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.canonical import canonical_text
from loginfer.logic.dialects import dialect_named
from loginfer.logic.entailment import Entailment, PathRules, Step
from loginfer.logic.rule import Atom, Constant, Rule, ScoredRule
from loginfer.logic.rule_files import dialect_of, parse_rules, read_rules
from loginfer.logic.subrules import SubRule, subrules_of
from loginfer.progress import Progress
from loginfer.randomness import generator
from loginfer.systems.rules.mined import LONGEST, NONE, MinedRules, RuleTable
from loginfer.systems.rules.texts import Skipped, mined_from, read_path_rules

# found      the rule itself was mined, up to renaming and atom order
# entailed   it follows from what was mined
# missed     it does not
# undecided  it depends on too many constants of the mined rules, or the rule has a negation
Status = Literal["found", "entailed", "missed", "undecided"]


@dataclass(frozen=True)
class LearnedSubRule:
    """A sub-rule of a benchmark rule, in R⁻.

    Parameters
    ----------
    rule
        The sub-rule.
    entailed
        Whether the mined rules entail it; None if that was not decided.
    """

    rule: Rule
    entailed: bool | None


@dataclass(frozen=True)
class RecoveredRule:
    """What became of one rule of a benchmark.

    Parameters
    ----------
    rule
        The rule.
    found
        Whether it was mined, up to renaming and atom order.
    entailed
        Whether the mined rules entail it; None if that was not decided.
    single_step
        Whether one application of one mined rule is enough.
    random_heads
        Share of the draws in which its body with a random head is entailed; None if there is no other head.
    derivation
        How it follows, rule by rule; empty if it does not.
    subrules
        Its sub-rules in R⁻: those that are entailed were learned instead of it, or with it.
    """

    rule: Rule
    found: bool
    entailed: bool | None
    single_step: bool
    random_heads: float | None
    derivation: tuple[Step, ...]
    subrules: tuple[LearnedSubRule, ...]

    @property
    def status(self) -> Status:
        """In one word: found, entailed, missed or undecided."""
        if self.found:
            return "found"
        if self.entailed is None:
            return "undecided"
        return "entailed" if self.entailed else "missed"

    @property
    def shortcuts(self) -> tuple[Rule, ...]:
        """The sub-rules that are entailed and have no entailed sub-rule themselves: all others follow."""
        learned = [(frozenset(s.rule.body), s.rule) for s in self.subrules if s.entailed]
        return tuple(rule for body, rule in learned if not any(other < body for other, _ in learned))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        names = ("status", "found", "entailed", "single_step", "random_heads")
        return {
            "rule": str(self.rule),
            **{name: getattr(self, name) for name in names},
            "derivation": [
                {"rule": str(s.rule), "premises": [*map(str, s.premises)], "conclusion": str(s.conclusion)}
                for s in self.derivation
            ],
            "subrules": [{"rule": str(s.rule), "entailed": s.entailed} for s in self.subrules],
        }


@dataclass(frozen=True)
class RecoveryFigures:
    """The shares for all mined rules, or for those of some confidence. None stands for a share of nothing.

    Parameters
    ----------
    confidence
        The least confidence of the rules; None for all of them.
    mined
        How many mined rules there are.
    eps_ent
        ε_ent, the share of benchmark rules that are entailed.
    eps_cont
        ε_cont, the share that was mined, up to renaming and atom order.
    eps_ent_single_step
        The share that follows by one application of one rule.
    eps_ent_random_heads
        ε_ent with random heads, the mean over all draws.
    subrules_entailed
        The share of R⁻ that is entailed.
    undecided
        Questions of all kinds that were not decided; they count as not entailed.
    """

    confidence: float | None
    mined: int
    eps_ent: float
    eps_cont: float
    eps_ent_single_step: float
    eps_ent_random_heads: float | None
    subrules_entailed: float | None
    undecided: int


@dataclass(frozen=True)
class RuleRecovery:
    """What mined rules say about the rules of a benchmark.

    Parameters
    ----------
    figures
        The shares for all mined rules.
    by_confidence
        The same for rules of some confidence, ascending.
    rules
        Rule by rule.
    subrules
        How many sub-rules R⁻ has.
    draws, seed
        Of random heads.
    """

    figures: RecoveryFigures
    by_confidence: tuple[RecoveryFigures, ...]
    rules: tuple[RecoveredRule, ...]
    subrules: int
    draws: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, shares as fractions."""
        return {
            **{name: value for name, value in vars(self.figures).items() if name != "confidence"},
            "benchmark_rules": len(self.rules),
            "subrules": self.subrules,
            "draws": self.draws,
            "seed": self.seed,
            "by_confidence": [dict(vars(figures)) for figures in self.by_confidence],
            "rules": [rule.as_dict() for rule in self.rules],
        }


# Rules of at least these confidences are looked at by themselves.
CONFIDENCES = (0.0, 0.05, 0.1, 0.5)
# Random heads for each body.
DRAWS = 20


def rule_recovery(
    rules: Sequence[Rule],
    mined: MinedRules | Sequence[ScoredRule | Rule],
    graph: KnowledgeGraph,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    confidences: Sequence[float] = CONFIDENCES,
    subrules: bool = True,
    progress: Progress | None = None,
) -> RuleRecovery:
    """Compare mined rules with the rules of a benchmark.

    Parameters
    ----------
    rules
        R, the rules of the benchmark.
    mined
        What was mined, over the ids of `graph`; or rules by name. A rule without a confidence counts as
        certain.
    graph
        P_train, whose vocabularies give the ids and the relations and types for random heads.
    seed, draws
        Of random heads: each is drawn uniformly from the relations (for a type atom: the types) that occur
        neither in the body nor in the head.
    confidences
        For each of these, the same for the mined rules of at least this confidence.
    subrules
        Whether to look at the sub-rules, too; of large bodies there are so many that they take most of the
        time.
    progress
        Called with what is being done, how much of it is done, and how much there is.

    Raises
    ------
    InputError
        If there are no rules, or none were mined.
    """
    if not rules:
        raise InputError("the benchmark has no rules to look for", hint="its rules.txt says which they are")
    everything = _as_mined(mined)
    if not len(everything):
        raise InputError("no rules were mined", hint="zero rules, which have no body, do not count")
    for level in confidences:
        if not 0 <= level <= 1:
            raise InputError(f"a confidence is between 0 and 1, not {level}")
    questions = _Questions(
        tuple(rules), graph, _random_heads(rules, graph, seed, draws), subrules_of(rules) if subrules else ()
    )
    answers = level_answers = _Answers(questions, everything, None)
    levels = sorted(set(confidences))
    by_confidence = []
    for number, level in enumerate(levels):
        if progress:
            progress("comparing rules", number, len(levels) + 1)
        confident = _confident(everything, level)
        if len(confident) < len(level_answers.mined):
            level_answers = _Answers(questions, confident, level_answers)
        by_confidence.append(replace(level_answers.figures, confidence=level))
    if progress:
        progress("comparing rules", len(levels), len(levels) + 1)
    rule_by_rule = answers.rule_by_rule()
    return RuleRecovery(answers.figures, tuple(by_confidence), rule_by_rule, len(questions.subrules), draws, seed)


# -- what is asked ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Questions:
    """The rules, the graph whose names they have, for each rule one head a draw, and the sub-rules."""

    rules: tuple[Rule, ...]
    graph: KnowledgeGraph
    random_heads: list[list[Atom]]
    subrules: tuple[SubRule, ...]


def _random_heads(rules: Sequence[Rule], graph: KnowledgeGraph, seed: int, draws: int) -> list[list[Atom]]:
    """Return for each rule one head a draw; none if there is nothing to choose from."""
    relations = [name for i, name in enumerate(graph.relations) if i != graph.type_relation]
    types = [Constant(name) for name in graph.entities.names(graph.types)]
    shares = generator(seed, "rule recovery", "random heads").random((len(rules), draws))
    random_heads = []
    for rule, row in zip(rules, shares, strict=True):
        head = rule.head
        if head.is_type:
            used_types = {atom.object for atom in rule if atom.is_type}
            heads = [Atom(head.subject, RDF_TYPE, kind) for kind in types if kind not in used_types]
        else:
            used_relations = {atom.relation for atom in rule}
            heads = [Atom(head.subject, name, head.object) for name in relations if name not in used_relations]
        random_heads.append([heads[int(share * len(heads))] for share in row] if heads else [])
    return random_heads


# -- what is answered ------------------------------------------------------------------------------


class _Answers:
    """The answers of one set of mined rules.

    Parameters
    ----------
    questions
        The questions.
    mined
        The rules.
    larger
        The answers of a set that contains these rules: what that does not entail, these do not.
    """

    def __init__(self, questions: _Questions, mined: MinedRules, larger: _Answers | None) -> None:
        self.questions, self.mined, self._larger = questions, mined, larger
        self._entailment = _entailment(mined, questions.graph)
        self._has_inequalities = any(scored.rule.inequalities for scored in mined.others)
        self._decisions: dict[object, bool | None] = {}

    @cached_property
    def entailed(self) -> list[bool | None]:
        return self._ask(self.questions.rules, None if self._larger is None else self._larger.entailed)

    @cached_property
    def subrules(self) -> list[bool | None]:
        return self._ask(
            [sub.rule for sub in self.questions.subrules], None if self._larger is None else self._larger.subrules
        )

    def _ask(self, rules: Sequence[Rule], larger: Sequence[bool | None] | None) -> list[bool | None]:
        answers = larger or [None] * len(rules)
        return [False if answer is False else self._entails(rule) for rule, answer in zip(rules, answers, strict=True)]

    def _entails(self, rule: Rule) -> bool | None:
        if rule.negations:
            return None  # canonical instances decide nothing about negation
        key: object = rule
        if not self._has_inequalities and all(part.left != part.right for part in rule.inequalities):
            # Then the inequalities of a rule make no difference, and most sub-rules differ in nothing else.
            key = (rule.atoms, rule.head)
        if key not in self._decisions:
            try:
                self._decisions[key] = self._entailment.entails(rule)
            except LimitError:
                self._decisions[key] = None
        return self._decisions[key]

    @cached_property
    def mined_unchanged(self) -> list[bool]:
        return contained(self.questions.rules, self.mined, self.questions.graph)

    @cached_property
    def single_step(self) -> list[bool]:
        return [not rule.negations and self._entailment.one_step(rule) for rule in self.questions.rules]

    @cached_property
    def random_heads(self) -> list[list[bool | None]]:
        answers: list[list[bool | None]] = []
        for index, (rule, heads) in enumerate(zip(self.questions.rules, self.questions.random_heads, strict=True)):
            if rule.negations:
                answers.append([None] * len(heads))
                continue
            larger = [None] * len(heads) if self._larger is None else self._larger.random_heads[index]
            open_ = list(dict.fromkeys(h for h, answer in zip(heads, larger, strict=True) if answer is not False))
            entailed = dict(zip(open_, self._entailment.entails_heads(rule, open_), strict=True))
            answers.append([entailed.get(head, False) for head in heads])
        return answers

    @cached_property
    def figures(self) -> RecoveryFigures:
        # Each draw has one head a rule, so the mean over draws is the share of all.
        random_answers = [answer for row in self.random_heads for answer in row]
        return RecoveryFigures(
            None,
            len(self.mined),
            _share(self.entailed) or 0.0,
            _share(self.mined_unchanged) or 0.0,
            _share(self.single_step) or 0.0,
            _share(random_answers),
            _share(self.subrules),
            [*self.entailed, *self.subrules, *random_answers].count(None),
        )

    def rule_by_rule(self) -> tuple[RecoveredRule, ...]:
        subrules: list[list[LearnedSubRule]] = [[] for _ in self.questions.rules]
        for sub, entailed in zip(self.questions.subrules, self.subrules, strict=True):
            for origin in sub.origins:
                subrules[origin].append(LearnedSubRule(sub.rule, entailed))
        return tuple(
            RecoveredRule(
                rule,
                self.mined_unchanged[i],
                self.entailed[i],
                self.single_step[i],
                _share(self.random_heads[i]),
                (self._entailment.derivation(rule) or ()) if self.entailed[i] else (),
                tuple(subrules[i]),
            )
            for i, rule in enumerate(self.questions.rules)
        )


def _share(answers: Sequence[bool | None]) -> float | None:
    return sum(map(bool, answers)) / len(answers) if answers else None


def _entailment(mined: MinedRules, graph: KnowledgeGraph) -> Entailment:
    """Return what mined rules entail, read as plain Datalog; zero rules are passed over."""
    relations = list(graph.relations)
    if graph.type_relation is not None:
        relations[graph.type_relation] = RDF_TYPE
    paths = mined.paths
    return Entailment.of_table(
        paths.head,
        paths.body,
        relations=relations,
        constants=graph.entities,
        variables=paths.variables,
        head_constant=paths.head_constant,
        end_constant=paths.end_constant,
        others=[scored.rule for scored in mined.others],
    )


def _as_mined(mined: MinedRules | Sequence[ScoredRule | Rule]) -> MinedRules:
    if isinstance(mined, MinedRules):
        return _without_zero_rules(mined)
    rules = [rule if isinstance(rule, ScoredRule) else ScoredRule(rule) for rule in mined]
    return MinedRules(RuleTable.empty(), tuple(rules))


def _without_zero_rules(mined: MinedRules) -> MinedRules:
    return replace(mined, paths=mined.paths.take(mined.paths.body[:, 0] != NONE))


def _confident(mined: MinedRules, least: float) -> MinedRules:
    others = [s for s in mined.others if s.confidence is None or s.confidence >= least]
    paths = mined.paths.take(np.asarray(mined.paths.confidence >= least))
    return replace(mined, paths=paths, others=tuple(others))


# -- mined as they are ------------------------------------------------------------------------------


def contained(rules: Sequence[Rule], mined: MinedRules, graph: KnowledgeGraph) -> list[bool]:
    """Return which rules are among the mined ones, up to variable renaming and atom order.

    A path rule has one row in a table: its path starts at the head's subject. So rows are compared, and
    canonical texts only for rules of other shapes.
    """
    rows = [_row(rule, graph) for rule in rules]
    mined_rows = _rows_among(mined.paths, [row for row in rows if row is not None])
    texts = {canonical_text(scored.rule) for scored in mined.others}
    return [
        row in mined_rows or (bool(texts) and canonical_text(rule) in texts)
        for rule, row in zip(rules, rows, strict=True)
    ]


def _row(rule: Rule, graph: KnowledgeGraph) -> tuple[int, ...] | None:
    """Return a rule as a row of the table; None if it is no path rule, or has names that the graph does not have."""
    paths, others = PathRules.of([rule])
    if others:
        return None
    relations = [relation_named(name, graph) for name in paths.relations]
    constants = [graph.entities.get(name) for name in paths.constants]
    if min(relations) < 0 or None in constants:
        return None

    def constant(code: int) -> int:
        entity = None if code == NONE else constants[code]
        return NONE if entity is None else entity

    steps = [NONE if c == NONE else 2 * relations[c // 2] + c % 2 for c in paths.body[0].tolist()]
    ends = constant(int(paths.head_constant[0])), constant(int(paths.end_constant[0]))
    return (relations[int(paths.head[0])], int(paths.variables[0]), *ends, *steps)


def _rows_among(paths: RuleTable, rule_rows: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return those rows of rules that a table has."""
    table_rows = paths.rows
    rows = np.array(rule_rows, dtype=np.int32).reshape(-1, 4 + LONGEST)
    # Few rows of the table have in each column what one of the rule rows has there.
    matches = np.all([*map(np.isin, table_rows.T, rows.T)], axis=0)
    return set(map(tuple, table_rows[matches].tolist())).intersection(rule_rows)


# -- reading what was mined -------------------------------------------------------------------------


def read_mined(
    source: str | Path, benchmark: Benchmark, *, dialect: str | None = None, on_error: Literal["fail", "skip"] = "fail"
) -> tuple[MinedRules, list[str]]:
    """Read mined rules, and say what was left out.

    Rules with names that the benchmark does not have are left out: by themselves they never apply to the
    body of a benchmark rule.

    Parameters
    ----------
    source
        A rule file, a shipped rule set, or the folder of a run whose system writes down rules.
    benchmark
        Gives the ids.
    dialect
        Of the file; detected by default.
    on_error
        What to do with lines that are no rule.

    Returns
    -------
    MinedRules, list of str
        The rules without zero rules, and notes for the user.

    Raises
    ------
    InputError
        If nothing is left, or a line is no rule.
    """
    path = Path(source)
    if path.is_dir():
        mined, skipped = _of_run(path, benchmark), Skipped()
    else:
        mined, skipped = _of_file(str(source), benchmark, dialect, on_error)
    count = len(skipped.malformed)
    lines = "1 line is" if count == 1 else f"{count:,} lines are"
    if skipped.malformed and on_error == "fail":
        raise InputError(skipped.malformed[0], hint=f"{lines} no rule; --on-error skip leaves such lines out")
    notes = [f"left out {count:,} of the mined rules: {reason}, e.g. {skipped.examples[reason]}"
             for reason, count in skipped.counts.items()]  # fmt: skip
    if skipped.malformed:
        notes.append(f"skipped what is no rule: {lines}, e.g. {skipped.malformed[0]}")
    usable = _without_zero_rules(mined)
    if len(usable) < len(mined):
        notes.append(f"left out {len(mined) - len(usable):,} zero rules: without a body they are no Datalog rules")
    if not len(usable):
        hint = "; ".join(notes) or "it is empty, or all of it is comments"
        raise InputError(f"`{source}` holds no rule that could be used", hint=hint)
    return usable, notes


def _of_file(
    source: str, benchmark: Benchmark, dialect: str | None, on_error: Literal["fail", "skip"]
) -> tuple[MinedRules, Skipped]:
    path = Path(source)
    name = dialect_named(dialect).name if dialect else dialect_of(path) if path.exists() else ""
    if name == "anyburl" and path.exists():
        return read_path_rules(source, benchmark.graph, distinct=False)
    return mined_from(read_rules(source, dialect, on_error), benchmark.graph, distinct=False)


def _of_run(path: Path, benchmark: Benchmark) -> MinedRules:
    """Return the rules that a run has kept."""
    from loginfer.evaluation.resuming import read_arrays
    from loginfer.evaluation.runs import WEIGHTS, load_run
    from loginfer.systems.rules.mined import from_arrays

    run = load_run(path)
    run.check_benchmark(benchmark)
    weights = path / WEIGHTS
    hint = "give a rule file, or the run of a rule miner"
    if not weights.exists():
        raise InputError(f"`{path}` has kept no rules: {run.system} writes nothing down", hint=hint)
    arrays = read_arrays(weights)[0]
    if "intercepts" in arrays:  # of `contrast`, which keeps its rules as text
        text = arrays["rules"].tobytes().decode("utf-8")
        return mined_from(parse_rules(text, "arrow", path=str(weights)), benchmark.graph, distinct=False)[0]
    try:
        return from_arrays(arrays)
    except LogInferError as error:
        raise InputError(f"`{path}` has kept no rules: {run.system} learns something else", hint=hint) from error
