"""For scripts.

What a script chooses for its evaluator; mistakes are told by the names of the arguments.

An evaluator for scripts: arrays of scores in, a dictionary of metrics out.

It asks for scores in the order of the benchmark's triples, which it gives, and computes the figures of
`loginfer evaluate` from them.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, get_args

import numpy as np

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.evaluation.evaluating import Evaluation, Outcome, evaluate_scores
from loginfer.evaluation.metric_table import metric_titles
from loginfer.evaluation.metrics import MetricOptions
from loginfer.evaluation.score_files import checked_scores, scorer_of
from loginfer.evaluation.thresholds import Criterion
from loginfer.evaluation.values import LabelledScores, Predictions, Protocol, Scores, Tie, labelled_triples, predict
from loginfer.kg import Triples
from loginfer.systems.interface import Scorer, choose_method

# What arguments are called on the command line.
_ARGUMENTS = {
    "--criterion": "criterion",
    "--negatives": "method",
    "--ranking": "protocols",
    "--threshold": "threshold",
    "--tie": "tie",
}


@contextlib.contextmanager
def words_of_a_script() -> Iterator[None]:
    """Tell an error with the name of the argument that it is about."""
    try:
        yield
    except LogInferError as error:
        error.where = _ARGUMENTS.get(error.where or "", error.where)
        raise


def wanted_figures(threshold: Any, criterion: Any, protocols: Any, tie: Any) -> MetricOptions:
    """Return which figures a script asks for; what is no name or number is told like a wrong one."""
    if isinstance(threshold, bool) or not isinstance(threshold, str | Real):
        raise InputError(
            f"a threshold is a number, `global` or `relation`, not {type(threshold).__name__}", where="threshold"
        )
    if not isinstance(protocols, Iterable):
        raise InputError(
            f"protocols come as a list, not as {type(protocols).__name__}",
            where="protocols",
            hint=f"give some of {', '.join(f'`{known}`' for known in get_args(Protocol))}, or ()",
        )
    asked: Any = (protocols,) if isinstance(protocols, str) else tuple(map(str, protocols))
    names: Any = (str(criterion), str(tie))
    number_or_name = threshold if isinstance(threshold, str) else float(threshold)
    return MetricOptions(number_or_name, names[0], asked, names[1], diagnosis=False)


def chosen_method(benchmark: Benchmark, method: str | None) -> str | None:
    """Return whose negatives are meant; None if the benchmark has none."""
    known = tuple(benchmark.negatives)
    if method is None and len(known) > 1:
        raise InputError(
            f"{benchmark.name} has negatives by {', '.join(known)}",
            where="method",
            hint=f"choose, e.g. Evaluator(benchmark, method={known[0]!r})",
        )
    return choose_method(benchmark, None if method is None else str(method))


class Evaluator:
    """From scores to metrics, without anything else that an evaluation does.

    Parameters
    ----------
    benchmark
        A benchmark, or its folder.
    method
        Whose negatives, if the benchmark has several.
    threshold, criterion, protocols, tie
        As for `evaluate`. From scores alone triples are ranked under `given` only.

    Examples
    --------
    >>> evaluator = Evaluator("bench/company")                       # doctest: +SKIP
    >>> scores = {key: model(triples) for key, triples in evaluator.triples().items()}  # doctest: +SKIP
    >>> evaluator.eval(scores)["accuracy"]                            # doctest: +SKIP
    0.537
    """

    def __init__(
        self,
        benchmark: Benchmark | str | Path,
        method: str | None = None,
        *,
        threshold: str | float = "global",
        criterion: Criterion = "accuracy",
        protocols: Sequence[Protocol] = ("filtered", "given"),
        tie: Tie = "realistic",
    ) -> None:
        if isinstance(benchmark, str | Path):
            benchmark = Benchmark.load(benchmark)
        if not isinstance(benchmark, Benchmark):
            raise InputError(
                f"{type(benchmark).__name__} is no benchmark",
                hint="give what `loginfer.load_benchmark` returns, or the name of its folder",
            )
        self.benchmark = benchmark
        with words_of_a_script():
            self.method = chosen_method(benchmark, method)
            self._options = wanted_figures(threshold, criterion, protocols, tie)

    def triples(self) -> dict[str, Triples]:
        """Return the triples to score, int32[n, 3] for `valid_pos`, `valid_neg`, `test_pos`, `test_neg`.

        Scores are expected in the order of these rows: subject, relation, object, as ids of
        `benchmark.graph.entities` and `benchmark.graph.relations`.
        """
        found: dict[str, Triples] = {}
        for split in ("valid", "test"):
            found[f"{split}_pos"], found[f"{split}_neg"] = labelled_triples(self.benchmark, self.method, split)
        return found

    def names(self) -> dict[str, list[tuple[str, str, str]]]:
        """Return the same triples by their names, in the same order."""
        return {key: self.benchmark.graph.names(triples) for key, triples in self.triples().items()}

    def scores(self, score: Scorer | Callable[[Triples], Any]) -> dict[str, Scores]:
        """Ask a model about all triples; return what `eval` takes.

        Parameters
        ----------
        score
            A function from int32[n, 3] to n numbers, or an object with such a method `score`.
        """
        return _sets(predict(scorer_of(score), self.benchmark, self.method))

    def eval(
        self, scores: Mapping[str, Any], *, score: Scorer | Callable[[Triples], Any] | None = None
    ) -> dict[str, float | None]:
        """Return the metrics by name, as fractions (see `expected_output_format`).

        Parameters
        ----------
        scores
            One array for each set of `triples` (see `expected_input_format`).
        score
            Who gives scores to any triples, as for `scores`; test triples are then ranked against everybody
            who could stand there, too.

        Raises
        ------
        InputError
            If a set is missing or unknown, or its scores are not one finite number a triple.
        """
        measures = self._evaluated(scores, score, self._options, "scores").measures
        found: dict[str, float | None] = dict(measures.metrics)
        found["threshold"] = None if measures.thresholds is None else measures.thresholds.value
        for protocol, figures in measures.ranking.items():
            found |= {f"{protocol}/{name}": figures[name] for name in metric_titles("ranking")}
        return found

    def evaluation(
        self,
        scores: Mapping[str, Any],
        *,
        score: Scorer | Callable[[Triples], Any] | None = None,
        name: str = "scores",
        out: str | Path | None = None,
        force: bool = False,
    ) -> Evaluation:
        """Return everything that there is to say about scores: breakdowns and diagnosis too.

        Parameters
        ----------
        scores, score
            As for `eval`.
        name
            What to call the model.
        out
            A folder for the run, which reports can show; by default nothing is written.
        force
            Replace a run that is there.
        """
        from loginfer.evaluation.runs import check_run, request_of, write_run

        if out is not None:
            check_run(out, force=force)
        options = MetricOptions(
            self._options.threshold, self._options.criterion, self._options.protocols, self._options.tie
        )
        made = self._evaluated(scores, score, options, name)
        if out is not None:
            request = request_of(made.configured, self.benchmark, self.method, options)
            write_run(made, request, out, options=options, force=force)
        return made

    def _evaluated(self, scores: Mapping[str, Any], score: Any, options: MetricOptions, name: str) -> Evaluation:
        checked = checked_scores(scores, self.triples(), self.benchmark.graph)
        said = Predictions(
            self.method,
            LabelledScores(checked["valid_pos"], checked["valid_neg"]),
            LabelledScores(checked["test_pos"], checked["test_neg"]),
        )
        settings = {"sha256": _sum(checked)}
        if score is None:
            return evaluate_scores(said, self.benchmark, options, name=name, settings=settings)
        return self._ranked(said, scorer_of(score), options, name, settings)

    def _ranked(
        self, said: Predictions, scorer: Scorer, options: MetricOptions, name: str, settings: Mapping[str, Any]
    ) -> Evaluation:
        from loginfer.evaluation.evaluating import ConfiguredSystem
        from loginfer.evaluation.metrics import measure
        from loginfer.evaluation.ranking import left_out, rank

        protocols = options.protocols
        notes = tuple(left_out(self.benchmark, protocols).values())
        ranks = rank(scorer, self.benchmark, method=self.method, protocols=protocols, predictions=said)
        measures = measure(self.benchmark, said, ranks, options, notes=notes)
        outcome = Outcome(said, ranks, notes=notes)
        return Evaluation(ConfiguredSystem(name, None, settings), self.benchmark, self.method, outcome, measures)

    @property
    def expected_input_format(self) -> str:
        """What `eval` takes, in words."""
        about = {
            "valid_pos": "P_valid",
            "valid_neg": f"N_valid of {self.method}",
            "test_pos": "P_test",
            "test_neg": f"N_test of {self.method}",
        }
        lines = [
            f"    {key!r}: one finite number for each of the {len(triples):,} triples of {about[key]}"
            for key, triples in self.triples().items()
            if len(triples)
        ]
        return "\n".join(
            [
                f"Evaluator.eval for {self.benchmark.name} takes a dictionary with the keys",
                *lines,
                "Values: numpy arrays, torch tensors or lists of shape (n,); higher means more likely.",
                "Order: that of the rows of Evaluator.triples().",
            ]
        )

    @property
    def expected_output_format(self) -> str:
        """What `eval` returns, in words."""
        constants, relations = ([n for n in metric_titles("ranking") if n.startswith(of)] for of in ("c_", "r_"))
        return "\n".join(
            [
                "Evaluator.eval returns a dictionary of numbers; None for what is not defined.",
                f"    on test, between 0 and 1: {', '.join(metric_titles('classification'))}",
                "    threshold: from which score on a triple is predicted, chosen on valid",
                "    given/…: ranks of constants and relations against the negatives of test:",
                f"        {', '.join(constants)},",
                f"        {', '.join(relations)}",
                "    filtered/…, unfiltered/…: the same against all candidates, if `score` is given",
            ]
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{key} {len(triples):,}" for key, triples in self.triples().items())
        return f"Evaluator({self.benchmark.name!r}, method={self.method!r}: {sizes})"


def _sets(said: Predictions) -> dict[str, Scores]:
    return {
        "valid_pos": said.valid.positive,
        "valid_neg": said.valid.negative,
        "test_pos": said.test.positive,
        "test_neg": said.test.negative,
    }


def _sum(scores: Mapping[str, Scores]) -> str:
    """Return the sum of all scores' bytes: it tells the runs of two models of the same name apart."""
    total = hashlib.sha256()
    for key in sorted(scores):
        total.update(np.ascontiguousarray(scores[key], dtype="<f8").tobytes())
    return total.hexdigest()
