"""`loginfer evaluate`: how well a system does on a benchmark."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import ForceOption, JsonOption, counted, note, print_json, progress_bar
from loginfer.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loginfer.benchmark import Benchmark
    from loginfer.evaluation import Wanted

__all__ = [
    "CriterionOption",
    "ThresholdOption",
    "TieOption",
    "evaluate",
    "settings_given",
    "threshold_of",
    "word",
]

ThresholdOption = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        help="global (default) or relation: chosen on valid, for all or for each relation; or a number.",
        show_default=False,
    ),
]
CriterionOption = Annotated[
    str | None,
    typer.Option(
        "--criterion",
        help="What a threshold is chosen for: accuracy (default), f1 or balanced_accuracy.",
        show_default=False,
    ),
]
TieOption = Annotated[
    str | None,
    typer.Option(
        "--tie",
        help="Competitors with the same score: optimistic, realistic (default) or pessimistic.",
        show_default=False,
    ),
]

RESUMABLE = "what is done so far is kept: the same command goes on from there"


def evaluate(
    bench: Annotated[
        Path, typer.Argument(metavar="BENCH", help="A benchmark's folder, ours or not.", show_default=False)
    ],
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            "-s",
            help="A name from `loginfer systems list`, pykeen:MODEL, or my_module:MySystem.",
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the system; repeatable. See `systems show`."
        ),
    ] = None,
    negatives: Annotated[
        str | None,
        typer.Option("--negatives", "-n", help="Whose negatives, if the benchmark has several."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all randomness.", min=0)] = 0,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="So many seeds, one run each; mean and interval.", min=1),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run's folder; without it nothing is kept.")
    ] = None,
    threshold: ThresholdOption = None,
    criterion: CriterionOption = None,
    ranking: Annotated[
        str,
        typer.Option("--ranking", help="Protocols: filtered, given, unfiltered; or none."),
    ] = "filtered,given",
    tie: TieOption = None,
    mode: Annotated[
        str | None, typer.Option("--mode", help="Short for --set mode=…: explicit, random or both.")
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Short for --set workers=….")] = None,
    tuned: Annotated[
        bool, typer.Option("--tuned/--no-tuned", help="Use settings that were tuned for the graph.")
    ] = True,
    diagnosis: Annotated[
        bool, typer.Option("--diagnosis/--no-diagnosis", help="Look for learned rules and shortcuts.")
    ] = True,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Instead of a system: a file of subject, relation, object, score."),
    ] = None,
    export_queries: Annotated[
        Path | None,
        typer.Option("--export-queries", help="Only write the triples to be scored, .tsv or .parquet."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="With --scores: what to call the system that gave them.")
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights/--no-weights", help="With --out: keep what was learned (large).")
    ] = True,
    checkpoint: Annotated[
        float,
        typer.Option("--checkpoint", help="Seconds between checkpoints while learning, with --out.", min=0),
    ] = 10.0,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Train a system on a benchmark and evaluate it on test.

    With --out, the folder gets metrics, predictions, ranks, weights and the learning curve; a run that was
    interrupted or killed goes on where it was when the same command is given again.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.evaluation.measures import Wanted
    from loginfer.systems.view import choose_method

    _one_of(system, scores, export_queries)
    if system is None:
        _refuse_unused(set=set, seeds=seeds, mode=mode, workers=workers)
    if export_queries is not None:
        _refuse_unused(out=out)
    if name is not None and scores is None:
        raise InputError("--name is for a file of scores", hint="leave it out, or give --scores FILE")
    wanted = Wanted(
        threshold=threshold_of(threshold or "global"),
        criterion=word(criterion or "accuracy"),  # type: ignore[arg-type]
        protocols=_protocols(ranking),  # type: ignore[arg-type]
        tie=word(tie or "realistic"),  # type: ignore[arg-type]
        diagnosis=diagnosis,
    )
    given = settings_given(set or [], mode=mode, workers=workers)
    benchmark = load_benchmark(bench)
    method = choose_method(benchmark, negatives)
    if export_queries is not None:
        _export(benchmark, method, export_queries, force, json)
        return
    if scores is not None:
        answer = _score_file(scores, benchmark, method, wanted, name or "scores", out, force)
    else:
        # Whatever somebody's own system prints must not get into the answer.
        with contextlib.redirect_stdout(sys.stderr):
            answer = _run(
                str(system), benchmark, method, wanted, given,
                seed=seed, seeds=seeds, out=out, force=force, tuned=tuned,
                checkpoint=checkpoint, weights=weights,
            )  # fmt: skip
    if json:
        print_json(answer)
        return
    from loginfer.cli.figures import print_figures

    print_figures(answer)
    if out is not None:
        print(f"written to {out}")


def _run(
    system: str,
    benchmark: Benchmark,
    method: str | None,
    wanted: Wanted,
    given: Mapping[str, Any],
    *,
    seed: int,
    seeds: int | None,
    out: Path | None,
    force: bool,
    tuned: bool,
    checkpoint: float,
    weights: bool,
) -> dict[str, Any]:
    from loginfer.evaluation.contender import contender
    from loginfer.evaluation.evaluating import evaluate_contender
    from loginfer.evaluation.running import run_contender
    from loginfer.evaluation.seeds import run_seeds

    if "seed" in given:
        raise InputError("the seed has an option of its own", where="--set", hint="give --seed NUMBER")
    ready = contender(system, benchmark, given, seed=seed, tuned=tuned)
    with _resumable(out), progress_bar() as progress:
        options: dict[str, Any] = {"progress": progress, "checkpoint_seconds": checkpoint}
        if seeds is not None:

            def make(seed: int) -> Any:
                return contender(system, benchmark, given, seed=seed, tuned=tuned)

            chosen = range(seed, seed + seeds)
            options |= {"force": force, "tell": note, "weights": weights}
            return run_seeds(make, chosen, benchmark, method, wanted, out, **options)
        if out is None:
            return evaluate_contender(ready, benchmark, method, wanted, **options).as_dict()
        options |= {"force": force, "tell": note, "weights": weights}
        made = run_contender(ready, benchmark, method, wanted, out, **options)
        return made.as_dict()


def _score_file(
    scores: Path,
    benchmark: Benchmark,
    method: str | None,
    wanted: Wanted,
    name: str,
    out: Path | None,
    force: bool,
) -> dict[str, Any]:
    from loginfer.benchmark.manifest import file_sum
    from loginfer.evaluation.evaluating import evaluate_scores
    from loginfer.evaluation.runs import check_run, request_of, write_run
    from loginfer.evaluation.score_files import read_scores

    if out is not None:
        check_run(out, force=force)
    predictions = read_scores(scores, benchmark, method)
    made = evaluate_scores(predictions, benchmark, wanted, name=name, settings={"sha256": file_sum(scores)})
    if out is not None:
        request = request_of(made.contender, benchmark, method, wanted)
        write_run(made, request, out, wanted=wanted, force=force)
    return made.as_dict()


def _export(benchmark: Benchmark, method: str | None, path: Path, force: bool, json: bool) -> None:
    from loginfer.evaluation.score_files import export_queries

    count = export_queries(benchmark, method, path, force=force)
    if json:
        print_json({"path": str(path), "triples": count, "benchmark": benchmark.name, "negatives": method})
        return
    print(f"{counted(count, 'triple')} to be scored, written to {path}")


@contextlib.contextmanager
def _resumable(out: Path | None) -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        # One that came in the way of a compiled kernel is the cause of a SystemError.
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if out is not None and cause is not None:
            note(RESUMABLE)
        raise


# -- reading options --------------------------------------------------------------------------------


def _one_of(system: str | None, scores: Path | None, export: Path | None) -> None:
    options = {"--system": system, "--scores": scores, "--export-queries": export}
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{given[0]} and {given[1]} do not go together", hint="give one of them")
    if not given:
        raise InputError(
            "no system to evaluate",
            hint="add --system NAME (see `loginfer systems list`), or --scores FILE",
        )


def _refuse_unused(**options: Any) -> None:
    """Complain about options that only a system has a use for."""
    for name, value in options.items():
        if value:
            raise InputError(
                f"--{name} needs a system to evaluate", hint="leave it out, or give --system NAME"
            )


def threshold_of(text: str) -> str | float:
    """Read a threshold: `global`, `relation` or a number."""
    try:
        return float(text)
    except ValueError:
        return word(text)


def word(text: str) -> str:
    """Read a name that is given in any case."""
    return text.strip().casefold().replace("-", "_")


def _protocols(text: str) -> tuple[str, ...]:
    words = [word(part) for part in text.split(",") if part.strip()]
    return () if words == ["none"] else tuple(dict.fromkeys(words))


def settings_given(pairs: list[str], **short: Any) -> dict[str, Any]:
    """Return the settings of `--set key=value`, and of their short forms."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InputError(f"`{pair}` is no setting", where="--set", hint="write key=value, e.g. epochs=20")
        if key in found:
            raise InputError(f"`{key}` is given twice", where="--set")
        found[key] = value.strip()
    for key, value in short.items():
        if value is None:
            continue
        if key in found:
            raise InputError(f"`{key}` is given twice: by --{key} and by --set")
        found[key] = str(value)
    return found
