"""Rules that something else has mined: a rule file in any dialect, or a run of an AnyBURL jar."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loginfer.benchmark.values import Benchmark
from loginfer.logic.scored import ScoredRule
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch
from loginfer.systems.rules.mining import Miner
from loginfer.systems.rules.values import MinedRules
from loginfer.systems.settings import setting

if TYPE_CHECKING:
    from loginfer.systems.rules.contrasting.scorer import ContrastScorer
    from loginfer.systems.rules.external_mining import ExternalMining
    from loginfer.systems.rules.scorer import RuleScorer

__all__ = ["External", "weighted"]


@dataclass(frozen=True, kw_only=True)
class External(Miner):
    """Applies rules that something else has mined.

    Rules over relations or constants that the graph does not have, and paths through a type, are left out
    and counted. Rules of AnyBURL are worth correct / (predictions + 5), with AnyBURL's weights for rules
    that say little; others what their file says, or 1 where it says nothing. Rules with weights, as
    `contrast` writes them, are applied as `contrast` does.
    """

    rules: str | None = setting(None, "a rule file: AnyBURL, PyClause, AMIE, RuDaS, Datalog, arrow, …")
    dialect: str | None = setting(None, "of the rule file; detected by default")
    on_error: Literal["fail", "skip"] = setting("fail", "lines that are no rule: stop, or leave them out")
    confidence: Literal["standard", "pca"] = setting("standard", "which of AMIE's confidences counts")
    distinct: Literal["auto", "yes", "no"] = setting(
        "auto", "whether variables stand for different entities; auto: in AnyBURL's rules"
    )
    aggregation: Literal["maximum", "noisy-or"] = setting(
        "maximum", "of the rules that predict a triple: the best, or 1 − Π (1 − confidence)"
    )
    jar: str | None = setting(None, "instead of a file: an AnyBURL jar, which is run")
    seconds: int = setting(100, "how long the jar mines", least=1)
    threads: int = setting(1, "threads of the jar", least=1, most=1024)
    java: str = setting("java", "the program that runs the jar")
    main_class: str = setting("de.unima.ki.anyburl.Learn", "the class of the jar that learns")
    grace: float = setting(60.0, "seconds more that the jar may take for reading and writing", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> ExternalMining:
        """Begin to read, or to run the jar on P_train.

        Raises
        ------
        InputError
            If neither or both are given, or the file or jar cannot be used.
        """
        from loginfer.systems.rules.external_mining import ExternalMining

        return ExternalMining(self, benchmark.graph)

    def mine(self, benchmark: Benchmark, watch: Watch | None = None) -> MinedRules:
        """Read the rules, or run the jar to its end; what is left out is said on stderr."""
        watch = watch or Unwatched()
        mining = self.begin(benchmark)
        while mining.advance():
            watch.progress(*mining.progress())
        for note in mining.notes:
            print(f"loginfer: {note}", file=sys.stderr)
        return mining.rules()

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer | ContrastScorer:  # type: ignore[override]
        """Return what scores triples with the rules over P_train."""
        if weighted(rules.others) and not len(rules.paths):
            from loginfer.systems.rules.contrasting.scorer import ContrastScorer

            return ContrastScorer.of_rules(benchmark.seen, rules.others)
        from loginfer.systems.rules.scorer import RuleScorer

        return RuleScorer(benchmark.seen, rules, self.aggregation)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> RuleScorer | ContrastScorer:  # type: ignore[override]
        """Return the scorer whose `arrays()` these are."""
        if "intercepts" in arrays:
            from loginfer.systems.rules.contrasting.scorer import ContrastScorer

            return ContrastScorer.from_arrays(benchmark.seen, arrays)
        return super().restore(benchmark, arrays)


def weighted(rules: Sequence[ScoredRule]) -> bool:
    """Say whether rules have weights that are to be added up, as those of `contrast` have."""
    return bool(rules) and all("weight" in dict(rule.extra) for rule in rules)
