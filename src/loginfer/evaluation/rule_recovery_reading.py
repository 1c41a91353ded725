"""Mined rules for the analysis: from a rule file in any dialect, or from the run of a miner."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.logic.dialects import dialect_named
from loginfer.logic.rulefile import SHIPPED, dialect_of, parse_rules, read_rules
from loginfer.systems.rules.texts import Skipped, mined_from, read_path_rules
from loginfer.systems.rules.values import NONE, MinedRules

__all__ = ["read_mined"]


def read_mined(
    source: str | Path,
    benchmark: Benchmark,
    *,
    dialect: str | None = None,
    on_error: Literal["fail", "skip"] = "fail",
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
    if skipped.malformed and on_error == "fail":
        raise InputError(
            skipped.malformed[0],
            hint=f"{_lines(len(skipped.malformed))} no rule; --on-error skip leaves such lines out",
        )
    notes = [f"left out {count:,} of the mined rules: {reason}, e.g. {skipped.examples[reason]}"
             for reason, count in skipped.counts.items()]  # fmt: skip
    if skipped.malformed:
        notes.append(
            f"skipped what is no rule: {_lines(len(skipped.malformed))}, e.g. {skipped.malformed[0]}"
        )
    has_body = mined.paths.body[:, 0] != NONE
    zero = int((~has_body).sum())
    if zero:
        notes.append(f"left out {zero:,} zero rules: without a body they are no Datalog rules")
    kept = MinedRules(mined.paths.take(has_body), mined.others, mined.distinct)
    if not len(kept):
        raise InputError(
            f"`{source}` holds no rule that could be used",
            hint="; ".join(notes) or "it is empty, or all of it is comments",
        )
    return kept, notes


def _lines(count: int) -> str:
    return "1 line is" if count == 1 else f"{count:,} lines are"


def _of_file(
    source: str, benchmark: Benchmark, dialect: str | None, on_error: Literal["fail", "skip"]
) -> tuple[MinedRules, Skipped]:
    name = dialect_named(dialect).name if dialect else _dialect_of(source)
    if name == "anyburl" and Path(source).exists():
        return read_path_rules(source, benchmark.graph, distinct=False)
    return mined_from(read_rules(source, dialect, on_error), benchmark.graph, distinct=False)


def _dialect_of(source: str) -> str:
    path = Path(source)
    if not path.exists():
        return "arrow" if source in SHIPPED else ""  # `read_rules` says what is wrong
    return dialect_of(path)


def _of_run(path: Path, benchmark: Benchmark) -> MinedRules:
    """Return the rules that a run has kept."""
    from loginfer.evaluation.array_files import read_arrays
    from loginfer.evaluation.runs import WEIGHTS, load_run
    from loginfer.systems.rules.stored import from_arrays

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
        raise InputError(
            f"`{path}` has kept no rules: {run.system} learns something else", hint=hint
        ) from error
