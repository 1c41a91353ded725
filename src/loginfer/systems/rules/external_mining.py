"""Reading rules that something else has mined, or has it mine them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.canonical import map_atoms
from loginfer.logic.dialects import dialect_named
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.rulefile import SHIPPED, dialect_of, read_rules
from loginfer.logic.scored import ScoredRule
from loginfer.logic.terms import Constant, Term
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.anyburl_weights import applied
from loginfer.systems.rules.external import External, weighted
from loginfer.systems.rules.jar import JarRun, numbered
from loginfer.systems.rules.texts import Skipped, mined_from
from loginfer.systems.rules.texts_reading import read_path_rules
from loginfer.systems.rules.values import BOTH, NONE, OBJECT, MinedRules, RuleTable

__all__ = ["ExternalMining"]

# A jar is asked how it is doing this often, in seconds.
PATIENCE = 0.25
THROUGH_TYPE = "a path through a type"


class ExternalMining:
    """A rule file that is being read, or a jar that is running.

    Parameters
    ----------
    settings
        What to read or run.
    graph
        P_train.

    Attributes
    ----------
    notes
        What to tell the user: how many rules were left out, and why.
    jar_sha256
        Of the jar that is run; None for a file.
    """

    def __init__(self, settings: External, graph: KnowledgeGraph) -> None:
        if (settings.rules is None) == (settings.jar is None):
            given = "both a rule file and a jar" if settings.rules else "neither a rule file nor a jar"
            raise InputError(
                f"External was given {given}", hint="give one: --set rules=FILE or --set jar=AnyBURL.jar"
            )
        if settings.dialect is not None:
            dialect_named(settings.dialect)
        self._settings, self._graph = settings, graph
        self._found = MinedRules(RuleTable.empty())
        self._done = False
        self._run: JarRun | None = None
        self._seen: tuple[Path, int] | None = None
        self.notes: list[str] = []
        self.jar_sha256: str | None = None
        if settings.jar is not None:
            self._numbered = numbered(graph)
            self._run = JarRun(
                self._numbered,
                settings.jar,
                java=settings.java,
                main_class=settings.main_class,
                seconds=settings.seconds,
                threads=settings.threads,
                grace=settings.grace,
            )
            self.jar_sha256 = self._run.sha256
            self.notes.append(f"{settings.jar} has the sha256 {self.jar_sha256}")

    def advance(self) -> bool:
        """Wait for the jar a little, or read the file; False if that is done."""
        if self._done:
            return False
        if self._run is not None:
            if self._run.wait(PATIENCE):
                return True
            path = self._run.written()
            if path is not None:
                self._read_written(path)
        elif self._settings.rules is not None:
            self._found = self._read_file(self._settings.rules)
        self._done = True
        return False

    def rules(self) -> MinedRules:
        """Return the rules; of a jar that is still running those that it has written so far."""
        path = None if self._done or self._run is None else self._run.written()
        if path is not None:
            # Whoever shows how the mining goes on asks often, and a file is written once in a while.
            seen = (path, path.stat().st_size)
            if seen != self._seen:
                self._seen = seen
                # Nothing that can be used yet is no error as long as the jar goes on.
                with contextlib.suppress(InputError):
                    self._read_written(path)
        return self._found

    def progress(self) -> tuple[str, int, int | None]:
        """Return how long the jar has been running, or how many rules were read."""
        if self._run is not None:
            return "running the jar", min(int(self._run.elapsed), self._run.seconds), self._run.seconds
        return "reading rules", len(self._found), None

    def checkpoint(self) -> Checkpoint | None:
        """Return nothing: reading is quick, and a jar cannot be resumed."""
        return None

    # -- reading -----------------------------------------------------------------------------------

    def _read_file(self, path: str) -> MinedRules:
        dialect = self._settings.dialect or _dialect_of(path)
        name = dialect_named(dialect).name
        distinct = (
            name == "anyburl" if self._settings.distinct == "auto" else self._settings.distinct == "yes"
        )
        if name == "anyburl":
            mined, skipped = read_path_rules(path, self._graph, distinct=distinct)
            if skipped.malformed and self._settings.on_error == "fail":
                raise _malformed(skipped)
        else:
            file = read_rules(path, dialect, self._settings.on_error)
            if name == "amie" and self._settings.confidence == "pca":
                file = replace(file, rules=tuple(map(_with_pca, file.rules)))
            mined, skipped = mined_from(file, self._graph, distinct=distinct)
            if weighted(file.rules):
                # Their weights are added up, whatever their shapes.
                known = tuple(scored for scored in file.rules if _is_known(scored.rule, self._graph))
                mined = MinedRules(RuleTable.empty(), known, distinct=False)
        mined = self._usable(mined, skipped, path)
        return applied(mined) if name == "anyburl" else mined

    def _read_written(self, path: Path) -> None:
        """Read what the jar has written; what is said about an earlier file no longer counts."""
        del self.notes[1:]
        distinct = self._settings.distinct != "no"
        mined, skipped = read_path_rules(path, self._numbered, distinct=distinct)
        if skipped.malformed and not len(mined):
            raise InputError(f"the jar `{self._settings.jar}` has written something else than rules: "
                             f"{skipped.malformed[0].partition(': ')[2]}")  # fmt: skip
        others = tuple(replace(scored, rule=self._renamed(scored.rule)) for scored in mined.others)
        self._found = applied(self._usable(replace(mined, others=others), skipped, str(self._settings.jar)))

    def _usable(self, mined: MinedRules, skipped: Skipped, source: str) -> MinedRules:
        """Leave out paths through types, and say what was left out."""
        good = _not_through_types(mined.paths, self._graph)
        if not good.all():
            skipped.counts[THROUGH_TYPE] = int(np.count_nonzero(~good))
            mined = replace(mined, paths=mined.paths.take(good))
        if not len(mined):
            if not len(skipped):
                raise InputError(f"`{source}` holds no rule")
            raise InputError(
                f"none of the rules in `{source}` can be used: {_reasons(skipped)}",
                hint="check that they were mined from this graph",
            )
        if len(skipped):
            self.notes.append(f"left out {len(skipped):,} of the rules in {source}: {_reasons(skipped)}")
        return mined

    def _renamed(self, rule: Rule) -> Rule:
        """Return a rule with the graph's own names for those that the jar was given."""

        def term(old: Term) -> Term:
            if not isinstance(old, Constant):
                return old
            return Constant(self._graph.entities[self._numbered.entity_id(old.name)])

        def atom(old: Atom) -> Atom:
            number = self._numbered.relation_id(str(old.relation))
            relation = RDF_TYPE if number == self._graph.type_relation else self._graph.relations[number]
            return Atom(term(old.subject), relation, term(old.object))

        return Rule(map_atoms(rule.body, atom), atom(rule.head))


def _is_known(rule: Rule, graph: KnowledgeGraph) -> bool:
    relations = all(name == RDF_TYPE or name in graph.relations for name in rule.relations)
    return relations and all(name in graph.entities for name in rule.constants)


def _dialect_of(path: str) -> str:
    if path in SHIPPED and not Path(path).exists():
        return "arrow"
    with reading(Path(path)):
        if Path(path).is_dir():
            raise InputError(
                f"`{path}` is a folder, not a rule file", hint="give the path of a file with rules"
            )
    return dialect_of(Path(path))


def _with_pca(scored: ScoredRule) -> ScoredRule:
    measures = dict(scored.extra)
    if "pca_confidence" not in measures:
        return scored
    try:
        return replace(scored, confidence=float(measures["pca_confidence"]))
    except ValueError:
        raise InputError(
            f"the PCA confidence `{measures['pca_confidence']}` is no number",
            where=None if scored.line is None else f"line {scored.line}",
        ) from None


def _not_through_types(paths: RuleTable, graph: KnowledgeGraph) -> npt.NDArray[np.bool_]:
    """Say which rules use types as types: (x, type, C) at the end of a path or as the head."""
    if graph.type_relation is None:
        return np.ones(len(paths), dtype=np.bool_)
    typed = (paths.body != NONE) & (paths.body // 2 == graph.type_relation)
    last = np.arange(paths.body.shape[1]) == (paths.length - 1)[:, None]
    fine = last & (paths.end_constant != NONE)[:, None] & (paths.body % 2 == 0)
    wrong_head = (paths.head == graph.type_relation) & np.isin(paths.variables, (BOTH, OBJECT))
    return np.asarray(~(typed & ~fine).any(axis=1) & ~wrong_head)


def _malformed(skipped: Skipped) -> InputError:
    count = len(skipped.malformed)
    lines = "1 line is" if count == 1 else f"{count:,} lines are"
    return InputError(
        skipped.malformed[0], hint=f"{lines} no rule; --set on_error=skip leaves such lines out"
    )


def _reasons(skipped: Skipped) -> str:
    """Say why rules were left out, most frequent reason first, with an example each."""
    counts = sorted(skipped.counts.items(), key=lambda item: -item[1])
    parts = []
    for reason, count in counts:
        example = f" (e.g. {skipped.examples[reason]})" if reason in skipped.examples else ""
        parts.append(f"{count:,} with {reason}{example}")
    if skipped.malformed:
        parts.append(f"{len(skipped.malformed):,} that cannot be read (e.g. {skipped.malformed[0]})")
    return "; ".join(parts)
