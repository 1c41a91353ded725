"""An evaluator for scripts: arrays of scores in, a dictionary of metrics out.

It asks for scores in the order of the benchmark's triples, which it gives, and computes the figures of
`loginfer evaluate` from them. Scores may be arrays of numpy, tensors of torch (which need not be installed) or plain
lists; errors name the argument that is wrong.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.reading import load_benchmark
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.evaluating import Evaluation, evaluate_scores, final_figures, named_arguments
from loginfer.evaluation.metric_table import TEST_GROUPS, metric_titles
from loginfer.evaluation.metrics import MetricOptions
from loginfer.evaluation.predictions import (
    PROTOCOLS,
    LabelledScores,
    Predictions,
    Protocol,
    Scores,
    Tie,
    checked_scores,
    labelled_triples,
    predict,
    twins_of,
)
from loginfer.evaluation.thresholds import Criterion
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.systems.interface import CandidateScorer, Scorer, choose_method

_LABELS = ("positive", "negative")


class Evaluator:
    """From scores to metrics, without anything else that an evaluation does.

    Parameters
    ----------
    benchmark
        A benchmark, or its folder.
    negatives
        Whose negatives, if the benchmark has several.
    threshold, criterion, ranking, tie
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
        negatives: str | None = None,
        *,
        threshold: str | float = "global",
        criterion: Criterion = "accuracy",
        ranking: Sequence[Protocol] = ("filtered", "given"),
        tie: Tie = "realistic",
    ) -> None:
        self.benchmark = load_benchmark(benchmark)
        with named_arguments():
            self.negatives = choose_method(self.benchmark, negatives)
            self._options = _metric_options(threshold, criterion, ranking, tie)

    def triples(self) -> dict[str, Triples]:
        """Return the triples to score, int32[n, 3] for `valid_pos`, `valid_neg`, `test_pos`, `test_neg`.

        Scores are expected in the order of these rows: subject, relation, object, as ids of
        `benchmark.graph.entities` and `benchmark.graph.relations`.
        """
        triples: dict[str, Triples] = {}
        for split in ("valid", "test"):
            labelled = labelled_triples(self.benchmark, self.negatives, split)
            triples[f"{split}_pos"], triples[f"{split}_neg"] = (part.copy() for part in labelled)
        return triples

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
        predictions = predict(_as_scorer(score), self.benchmark, self.negatives)
        sets = {"valid": predictions.valid, "test": predictions.test}
        return {f"{split}_{label[:3]}": getattr(scores, label) for split, scores in sets.items() for label in _LABELS}

    def eval(
        self, scores: Mapping[str, Any], *, score: Scorer | Callable[[Triples], Any] | None = None
    ) -> dict[str, float | None]:
        """Return the metrics by name, as fractions (see `expected_output_format`).

        Parameters
        ----------
        scores
            One array for each set of `triples` (see `expected_input_format`).
        score
            Scores any triples, as for `scores`; test triples are then also ranked against all candidates.

        Raises
        ------
        InputError
            If a set is missing or unknown, or its scores are not one finite number a triple.
        """
        return final_figures(self._evaluate(scores, score, self._options, "scores").measures.as_dict())

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
        from loginfer.evaluation.runs import check_run, write_run

        if out is not None:
            check_run(out, force=force)
        evaluation = self._evaluate(scores, score, dataclasses.replace(self._options, diagnosis=True), name)
        if out is not None:
            write_run(evaluation, out, force=force)
        return evaluation

    def _evaluate(self, arrays: Mapping[str, Any], score: Any, options: MetricOptions, name: str) -> Evaluation:
        scores = _check_sets(arrays, self.triples(), self.benchmark.graph)
        valid, test = (
            LabelledScores(scores[f"{s}_pos"], scores[f"{s}_neg"], twins_of(self.benchmark, self.negatives, s))
            for s in ("valid", "test")
        )
        # The sum distinguishes the runs of two models of the same name.
        digest = hashlib.sha256()
        for key in sorted(scores):
            digest.update(np.ascontiguousarray(scores[key], dtype="<f8").tobytes())
        scorer = None if score is None else _as_scorer(score)
        settings = {"sha256": digest.hexdigest()}
        predictions = Predictions(self.negatives, valid, test)
        return evaluate_scores(predictions, self.benchmark, options, scorer=scorer, name=name, settings=settings)

    @property
    def expected_input_format(self) -> str:
        """What `eval` takes, in words."""
        lines = [f"Evaluator.eval for {self.benchmark.name} takes a dictionary with the keys"]
        for key, triples in self.triples().items():
            split, label = key.split("_")
            which = f"P_{split}" if label == "pos" else f"N_{split} of {self.negatives}"
            if len(triples):
                lines.append(f"    {key!r}: one finite number for each of the {len(triples):,} triples of {which}")
        lines.append("Values: numpy arrays, torch tensors or lists of shape (n,); higher means more likely.")
        return "\n".join([*lines, "Order: that of the rows of Evaluator.triples()."])

    @property
    def expected_output_format(self) -> str:
        """What `eval` returns, in words."""
        paired = (twins_of(self.benchmark, self.negatives, "test") >= 0).any()
        metrics = metric_titles(*(group for group in TEST_GROUPS if group != "pairs" or paired))
        constants, relations = ([n for n in metric_titles("ranking") if n.startswith(of)] for of in ("c_", "r_"))
        return "\n".join(
            [
                "Evaluator.eval returns a dictionary of numbers; None for what is not defined.",
                f"    on test, between 0 and 1: {', '.join(metrics)}",
                "    threshold: from which score on a triple is predicted, chosen on valid",
                "    given/…: ranks of constants and relations against the negatives of test:",
                f"        {', '.join(constants)},",
                f"        {', '.join(relations)}",
                "    filtered/…, unfiltered/…, seen/…: the same against all candidates, if `score` is given",
            ]
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{key} {len(triples):,}" for key, triples in self.triples().items())
        return f"Evaluator({self.benchmark.name!r}, negatives={self.negatives!r}: {sizes})"


# -- what a script gives ----------------------------------------------------------------------------


def _metric_options(threshold: Any, criterion: Any, ranking: Any, tie: Any) -> MetricOptions:
    """Return which figures a script asks for; values of a wrong type are errors like wrong names."""
    if isinstance(threshold, bool) or not isinstance(threshold, str | Real):
        raise InputError(
            f"a threshold is a number, `global` or `relation`, not {type(threshold).__name__}", where="threshold"
        )
    if not isinstance(ranking, Iterable):
        raise InputError(
            f"ranking protocols come as a list, not as {type(ranking).__name__}",
            where="ranking",
            hint=f"give some of {', '.join(f'`{name}`' for name in PROTOCOLS)}, or ()",
        )
    protocol_names: Any = (ranking,) if isinstance(ranking, str) else tuple(map(str, ranking))
    names: Any = (str(criterion), str(tie))
    number_or_name = threshold if isinstance(threshold, str) else float(threshold)
    return MetricOptions(number_or_name, names[0], protocol_names, names[1], diagnosis=False)


def _check_sets(arrays: Any, sets: Mapping[str, Triples], graph: KnowledgeGraph) -> dict[str, Scores]:
    """Return float64[n] for each set of triples; complain if `arrays` does not hold that.

    An empty set may be left out.
    """
    if not isinstance(arrays, Mapping):
        hint = f"give arrays under the keys {', '.join(f'`{key}`' for key in sets)}"
        raise InputError(f"scores come as a dictionary, not as {type(arrays).__name__}", hint=hint)
    for key in arrays:
        if key not in sets:
            raise UnknownNameError("set of triples", str(key), sets)
    missing = [key for key in sets if key not in arrays and len(sets[key])]
    if missing:
        hint = f"score `evaluator.triples()[{missing[0]!r}]`, one number a row"
        raise InputError(f"there are no scores for {', '.join(f'`{key}`' for key in missing)}", hint=hint)
    return {key: checked_scores(arrays.get(key, ()), graph, triples, key) for key, triples in sets.items()}


def _as_scorer(score: Any) -> Scorer:
    """Return a scorer: an object with a method `score`, or a function that does the same."""
    method = getattr(score, "score", None)
    if callable(method) and isinstance(score, CandidateScorer):
        return cast(Scorer, score)
    function = method if callable(method) else score
    if not callable(function):
        hint = "give a function from triples to numbers, or an object with a method `score`"
        raise InputError(f"{type(score).__name__} gives no scores", where="score", hint=hint)
    return cast(Scorer, SimpleNamespace(score=function))
