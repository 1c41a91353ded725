"""From a run to new triples: the best answers of a fitted system to queries, whether they are known, and why.

A query is a triple with an open position, such as (ann, knows, ?), or a relation alone: (?, knows, ?). What may stand
there is what train, valid and test have there, as for ranks; of an inductive benchmark what the context graph has, too.
The scores of a whole relation are asked for block by block, and only the best are kept; triples (x, R, x) are left out
if R has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark import Benchmark, load_benchmark
from loginfer.engine import open_engine
from loginfer.engine.program import explain as one_step_reasons
from loginfer.errors import InputError
from loginfer.evaluation.ranking import BlockScorer, candidate_names, no_number, slices
from loginfer.evaluation.runs import Run, load_run
from loginfer.evaluation.score_files import table_ending
from loginfer.evaluation.seeds import seed_runs
from loginfer.files import atomic_path
from loginfer.frames import Rows
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary
from loginfer.kg.formats.base import compressed
from loginfer.kg.formats.tsv import refuse_names
from loginfer.kg.graph import member, merged_keys, resolve_entity, resolve_relation
from loginfer.kg.load import read_statements
from loginfer.logic.rule import Constant, Inequality, Rule, ScoredRule
from loginfer.progress import Progress, ProgressChoice, each, report_progress, shown
from loginfer.systems.interface import POSITIONS, FiringRule, Position, RuleExplainer, Scorer
from loginfer.systems.registry import systems

Ids: TypeAlias = npt.NDArray[np.int32]
Keys: TypeAlias = npt.NDArray[np.int64]
Scores: TypeAlias = npt.NDArray[np.float64]
Names: TypeAlias = tuple[str, str, str]

# What stands in a file of queries for an open position.
OPEN = "?"
# So many rules are given for each answer, at most.
RULES = 3
# The status of a triple that is in no set of the benchmark.
NEW = "new"


@dataclass(frozen=True, slots=True)
class RuleForAnswer:
    """A rule that predicts an answer.

    Parameters
    ----------
    rule
        Its text; one without a body has nothing before its arrow.
    confidence
        What it is worth where it is applied; of `contrast` what it adds to the log-odds.
    premises
        Triples that it predicts the answer from: the first witness.
    """

    rule: str
    confidence: float
    premises: tuple[Names, ...]


@dataclass(frozen=True)
class PredictedTriples(Rows):
    """The answers to queries, query by query in the order they were given, best first.

    Parameters
    ----------
    run
        Whose answers.
    graph
        Has the names.
    triples, scores
        int32[n, 3], float64[n].
    confidences
        How likely each is, between 0 and 1, by the run's calibration; None if it has none.
    status
        The set of the benchmark that each is in: train, valid, test, context or negative; `new` if in none.
    query_numbers
        Which query each answers, counted from 0.
    rules
        The best rules for each, if they were asked for.
    """

    run: Run
    graph: KnowledgeGraph = field(repr=False)
    triples: Triples = field(repr=False)
    scores: Scores = field(repr=False)
    confidences: list[float | None] = field(repr=False)
    status: list[str] = field(repr=False)
    query_numbers: list[int] = field(repr=False)
    rules: list[list[RuleForAnswer]] | None = field(default=None, repr=False)
    columns = ("subject", "relation", "object", "score", "confidence", "status", "query")

    def __len__(self) -> int:
        return len(self.triples)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield names, score, confidence, status and query of each triple."""
        columns = self.scores.tolist(), self.confidences, self.status, self.query_numbers
        for names, *values in zip(self.graph.names(self.triples), *columns, strict=True):
            yield *names, *values

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        answers: list[dict[str, Any]] = [dict(zip(self.columns, row, strict=True)) for row in self.rows()]
        for answer, rules in zip(answers, self.rules or (), strict=False):
            answer["rules"] = list(map(asdict, rules))
        return {"system": self.run.system, "benchmark": self.run.benchmark, "answers": answers}

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a row for each triple: TSV with a header, or Parquet, as the file's name ends."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        ending, rows = table_ending(path, "predictions"), list(self.rows())
        with atomic_path(path, force=force) as file, file.open("wb") as raw, compressed(raw, str(path)) as stream:
            if ending == ".parquet":
                kinds = [pa.string()] * 3 + [pa.float64(), pa.float64(), pa.string(), pa.int64()]
                columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
                pq.write_table(pa.table(columns, names=list(self.columns)), stream)
            else:
                names = Vocabulary.of([name for row in rows for name in row[:3]])
                refuse_names(names, b"\t\n\r\0", "tab-separated columns")
                texts = (["" if value is None else str(value) for value in row] for row in (self.columns, *rows))
                stream.writelines("\t".join(row).encode() + b"\n" for row in texts)


def predict(
    run: str | Path | Run,
    *,
    subject: str | None = None,
    relation: str | None = None,
    object: str | None = None,
    queries: str | Path | Iterable[Sequence[str | None]] | None = None,
    top: int = 10,
    new: bool | None = None,
    explain: bool = False,
    benchmark: Benchmark | str | Path | None = None,
    progress: ProgressChoice = None,
) -> PredictedTriples:
    """Ask the system of a run for the best answers to a query.

    Parameters
    ----------
    run
        A run with weights, or its folder.
    subject, relation, object
        What is known of the answers: two of the three, or all; or a relation alone, whose best new triples are looked
        for. The last part of a name is enough where that is unambiguous.
    queries
        Several queries instead: triples of names with None where they are open, or a file of triples with `?` there.
    top
        Answers to each query, at most.
    new
        True for triples that are in no set of the benchmark, False for those that are in one. By default both, but of a
        relation alone the new ones.
    explain
        Whether to give the best rules for each answer: of systems that have rules.
    benchmark
        The run's benchmark, if it is not where it was.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.

    Raises
    ------
    UnknownNameError
        For a name that the benchmark does not have, with the nearest ones.
    InputError
        If the run has no weights, or a query leaves too much open.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.predict("run", subject="00003316", relation="_hypernym", new=True).to_frame()  # doctest: +SKIP
    """
    if top < 1:
        raise InputError(f"{top} answers are none", where="top", hint="give a number from 1 on")
    name_queries: Iterable[Sequence[str | None]] = [(subject, relation, object)]
    if queries is not None:
        if (subject, relation, object) != (None, None, None):
            raise InputError("several queries and the parts of one do not go together", hint="give one of the two")
        name_queries = _read_queries(queries) if isinstance(queries, str | Path) else queries
    if not isinstance(run, Run) and (seeds := seed_runs(run)):
        raise InputError(f"`{run}` holds a run for each seed", hint=f"give one of them, such as {seeds[0]}")
    run = load_run(run)
    benchmark = load_benchmark(run.benchmark_folder if benchmark is None else benchmark)
    graph, sets = benchmark.graph, _labelled_sets(benchmark)
    names = candidate_names(benchmark)[1]
    names.add(benchmark.seen.triples)
    candidates = names.ids
    id_queries = [_parse_query(graph, candidates, query) for query in name_queries]
    scorer = run.scorer(benchmark)
    explainer = scorer if explain and isinstance(scorer, RuleExplainer) else None
    if explain and explainer is None:
        miners = ", ".join(entry.name for entry in systems() if entry.kind == "rule miner")
        raise InputError(f"{run.system} has no rules to explain its answers by", hint=f"systems that have: {miners}")
    not_new, answers = merged_keys(*sets.values()), [(np.empty(0, dtype=np.int64), np.empty(0))]
    with shown(progress) as show:
        for _, query in each(id_queries, "answering queries", show if len(id_queries) > 1 else None):
            only_new = query.whole or None if new is None else new
            answers.append(_best(scorer, graph, query, top, not_new, only_new, show))
    numbers = np.repeat(np.arange(len(id_queries)), [len(scores) for _, scores in answers[1:]])
    keys, scores = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    status = np.full(len(keys), NEW, dtype=np.object_)
    for name in reversed(sets):  # positives come first, and win
        status[member(sets[name], keys)] = name
    triples = graph.keys.unpack(keys)
    rules = None if explainer is None else _rules_for(explainer, benchmark.seen, triples)
    calibration = run.calibration()
    confidences = [None] * len(keys) if calibration is None else calibration.confidence(scores).tolist()
    return PredictedTriples(run, graph, triples, scores, confidences, status.tolist(), numbers.tolist(), rules)


def _labelled_sets(benchmark: Benchmark) -> dict[str, Keys]:
    """Return the sets of a benchmark as sorted keys, positives first, all negatives as one."""
    sets: dict[str, Keys] = {}
    for split, method, triples in benchmark.sets():
        name = split if method is None else "negative"
        sets[name] = merged_keys(sets.get(name, np.empty(0, dtype=np.int64)), benchmark.graph.keys.pack(triples))
    if benchmark.context is not None:
        sets["context"] = benchmark.context.packed
    return sets


# -- queries ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ParsedQuery:
    """Triples with an open position, and what may stand there.

    Parameters
    ----------
    triples
        int32[q, 3]: one, or of a whole relation one for each subject. What stands in the position does not matter.
    position, candidates
        Which position; int32[c].
    whole
        Whether it is about a whole relation.
    """

    triples: Triples
    position: Position
    candidates: Ids
    whole: bool = False


def _read_queries(path: str | Path) -> list[list[str | None]]:
    return [[None if name == OPEN else name for name in names] for names in read_statements(path)]


def _parse_query(graph: KnowledgeGraph, candidates: Sequence[Ids], query: Sequence[str | None]) -> _ParsedQuery:
    """Return what a query of names asks for; candidates are the constants, the types and the relations."""
    ids = np.zeros((1, 3), dtype=np.int32)
    for column, (name, find) in enumerate(zip(query, (resolve_entity, resolve_relation, resolve_entity), strict=False)):
        ids[0, column] = 0 if name is None else find(graph, name)
    constants, types, relations = candidates
    objects = types if ids[0, 1] == graph.type_relation else constants
    match tuple(name is None for name in query):
        case (False, False, False):
            return _ParsedQuery(ids, "object", ids[0, 2:])
        case (False, False, True):
            return _ParsedQuery(ids, "object", objects)
        case (True, False, False):
            return _ParsedQuery(ids, "subject", constants)
        case (False, True, False):
            only_type = ids[0, 2] in types and ids[0, 2] not in constants
            return _ParsedQuery(ids, "relation", relations[(relations == graph.type_relation) == only_type])
        case (True, False, True):
            triples = np.repeat(ids, len(constants), axis=0)
            triples[:, 0] = constants
            return _ParsedQuery(triples, "object", objects, whole=True)
    text = ", ".join(OPEN if name is None else name for name in query)
    raise InputError(f"({text}) is no query", hint="give two of subject, relation and object, or a relation alone")


def _best(
    scorer: Scorer,
    graph: KnowledgeGraph,
    query: _ParsedQuery,
    top: int,
    not_new: Keys,
    new: bool | None,
    progress: Progress | None,
) -> tuple[Keys, Scores]:
    """Return the best answers to a query, by score, then by name: keys and scores.

    `not_new` are the triples of the benchmark's sets, as sorted keys.
    """
    blocks, column = BlockScorer(scorer), POSITIONS.index(query.position)
    keys, scores = np.empty(0, dtype=np.int64), np.empty(0)
    least = np.nextafter(scorer.never, np.inf) if isinstance(scorer, RuleExplainer) else -np.inf
    # Symmetric scores are best for (x, R, x), which says nothing where R never holds of x and x.
    without_loops = query.whole and query.triples[0, 1] not in graph.looped
    rows, columns = blocks.shape(len(query.triples), len(query.candidates))
    for part in slices(len(query.triples), rows):
        report_progress(progress if query.whole else None, "scoring subjects", part.start, len(query.triples))
        for candidates in slices(len(query.candidates), columns):
            block = blocks.scores(query.triples[part], query.position, query.candidates[candidates])
            row, place = np.nonzero(~(block < least))  # NaN too
            triples = query.triples[part][row]
            triples[:, column] = query.candidates[candidates][place]
            if np.isnan(candidate_scores := block[row, place].astype(np.float64)).any():
                raise no_number(graph, triples[np.isnan(candidate_scores).argmax()])
            packed = graph.keys.pack(triples)
            keep = np.full(len(packed), True) if new is None else member(not_new, packed) != new
            if without_loops:
                keep &= triples[:, 0] != triples[:, 2]
            keys, scores = np.concatenate([keys, packed[keep]]), np.concatenate([scores, candidate_scores[keep]])
            order = np.lexsort((keys, -scores))[:top]
            keys, scores = keys[order], scores[order]
            if len(scores) == top:
                # Where blocks come in the order of names, those who only draw level come too late.
                least = scores[-1] if columns < len(query.candidates) else np.nextafter(scores[-1], np.inf)
    return keys, scores


# -- rules that speak for answers --------------------------------------------------------------------


def _rules_for(scorer: RuleExplainer, seen: KnowledgeGraph, triples: Triples) -> list[list[RuleForAnswer]]:
    """Return the best rules for each triple, each with its first witness."""
    engine = open_engine(seen)

    def answer_rule(firing: FiringRule, triple: list[int]) -> RuleForAnswer:
        premises: list[Names] = []
        if isinstance(firing.rule, ScoredRule):
            rule = _with_inequalities(firing.rule.rule) if firing.distinct else firing.rule.rule
            premises = [p for reason in one_step_reasons(engine, [rule], triple).reasons for p in reason.premises]
        return RuleForAnswer(str(firing.rule), firing.confidence, tuple(premises))

    return [[answer_rule(firing, row) for firing in scorer.explain(row)[:RULES]] for row in triples.tolist()]


def _with_inequalities(rule: Rule) -> Rule:
    """Return a rule that says that its variables differ from one another and from its constants."""
    terms = dict.fromkeys(term for atom in rule for term in atom.terms)
    pairs = (Inequality(*pair) for pair in combinations(terms, 2) if not all(isinstance(t, Constant) for t in pair))
    return Rule((*rule.body, *pairs), rule.head)
