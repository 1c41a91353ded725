"""`loginfer evaluate`, `score`, `predict` and `systems`: how well systems do, what they answer, and which there are.

Figures are shown to people in percent, ranking with its protocol, then what was learned.
"""

from __future__ import annotations

import contextlib
import json as json_format
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.commands import CommandGroup
from loginfer.cli.common import (
    ForceOption,
    FullNamesOption,
    JsonOption,
    ShownNames,
    console,
    counted,
    note,
    option_words,
    print_json,
    print_table,
    progress_bar,
    rule_texts,
    say,
    say_resumable,
    sentences,
    shown,
    table,
    words_of,
)
from loginfer.errors import InputError, LogInferError, UnknownNameError
from loginfer.evaluation.metric_table import TEST_GROUPS, metric_text, metric_title, published_text, shown_metrics
from loginfer.files import refuse_to_overwrite

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.evaluation.evaluating import ConfiguredSystem
    from loginfer.evaluation.metrics import MetricOptions
    from loginfer.predicting import PredictedTriples
    from loginfer.settings import Setting
    from loginfer.systems.registry import SystemEntry

ThresholdOption = Annotated[
    str | None,
    typer.Option(
        "--threshold", help="global (default) or relation: chosen on valid, for all or for each relation; or a number."
    ),
]
CriterionOption = Annotated[
    str | None,
    typer.Option("--criterion", help="What a threshold is chosen for: accuracy (default), f1 or balanced_accuracy."),
]
TieOption = Annotated[
    str | None,
    typer.Option("--tie", help="Competitors with the same score: optimistic, realistic (default) or pessimistic."),
]


def evaluate(
    context: typer.Context,
    bench: Annotated[
        Path,
        typer.Argument(metavar="BENCH", help="A benchmark's folder, ours or not, or a name of `loginfer kg list`."),
    ],
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            "--systems",
            "-s",
            metavar="NAME",
            help="Of `loginfer systems list`, pykeen:MODEL or my_module:MySystem; several: a,b,c.",
        ),
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the system; repeatable.")
    ] = None,
    negatives: Annotated[
        str | None, typer.Option("--negatives", "-n", help="Whose negatives, if the benchmark has several.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all randomness.", min=0)] = 0,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="So many seeds, one run each; mean and interval.", min=1)
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Systems at a time, each into a folder of its own; one per core.", min=1),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run's folder; without it nothing is kept.")
    ] = None,
    threshold: ThresholdOption = None,
    criterion: CriterionOption = None,
    ranking: Annotated[str, typer.Option("--ranking", help="filtered, seen, given, unfiltered; or none.")] = "filtered",
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
        Path | None, typer.Option("--scores", help="Instead of a system: a file of subject, relation, object, score.")
    ] = None,
    export_queries: Annotated[
        Path | None, typer.Option("--export-queries", help="Only write the triples to be scored, .tsv or .parquet.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="With --scores: what to call the system that gave them.")
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights/--no-weights", help="With --out: keep what was learned (large).")
    ] = True,
    checkpoint: Annotated[
        float, typer.Option("--checkpoint", help="Seconds between checkpoints while learning, with --out.", min=0)
    ] = 10.0,
    callback: Annotated[
        list[str] | None,
        typer.Option("--callback", metavar="MODULE:OBJECT", help="An experiment tracker of your own; repeatable."),
    ] = None,
    force: ForceOption = False,
    full_names: FullNamesOption = False,
    json: JsonOption = False,
) -> None:
    """Train a system on a benchmark and evaluate it on test, or compare several.

    With --out, the folder gets metrics, predictions, ranks, weights and the learning curve, of several systems each a
    folder of its own; what was interrupted goes on when the same command is given again.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.evaluation import evaluating, metrics, runs, score_files
    from loginfer.evaluation.seeds import run_seeds
    from loginfer.files import file_sum
    from loginfer.systems.interface import choose_method

    systems = system_names(system)
    _check_together({"--system": systems or None, "--scores": scores, "--export-queries": export_queries})
    if not systems:
        _refuse_unused(set=set, seeds=seeds, mode=mode, workers=workers, callback=callback)
    if export_queries is not None:
        _refuse_unused(out=out)
    if name is not None and scores is None:
        raise InputError("--name is for a file of scores", hint="leave it out, or give --scores FILE")
    options = metrics.MetricOptions(
        threshold=_read_threshold(threshold or "global"),
        criterion=_read_word(criterion or "accuracy"),  # type: ignore[arg-type]
        protocols=_read_protocols(ranking),  # type: ignore[arg-type]
        tie=_read_word(tie or "realistic"),  # type: ignore[arg-type]
        diagnosis=diagnosis,
    )
    system_settings = settings_given(set or [], mode=mode, workers=workers)
    benchmark = load_benchmark(bench)
    method = choose_method(benchmark, negatives)
    if export_queries is not None:
        count = score_files.export_queries(benchmark, method, export_queries, force=force)
        if json:
            about = {"path": str(export_queries), "triples": count, "benchmark": benchmark.name, "negatives": method}
            print_json(about)
        else:
            say(f"{counted(count, 'triple')} to be scored, written to {export_queries}")
        return
    if scores is not None:
        if out is not None:
            runs.check_run(out, force=force)
        predictions = score_files.read_scores(scores, benchmark, method)
        settings = {"sha256": file_sum(scores)}
        scored = evaluating.evaluate_scores(predictions, benchmark, options, name=name or "scores", settings=settings)
        if out is not None:
            runs.write_run(scored, out, force=force)
        _show(scored.as_dict(), json, out)
        return
    if "seed" in system_settings:
        raise InputError("the seed has an option of its own", where="--set", hint="give --seed NUMBER")
    with contextlib.redirect_stdout(sys.stderr):
        callbacks = evaluating.trackers(callback or ())

    def evaluated(name: str, settings: Mapping[str, Any], out: Path | None) -> dict[str, Any]:
        def configured(seed: int) -> ConfiguredSystem:
            return evaluating.configure_system(name, benchmark, settings, seed=seed, tuned=tuned)

        # What a user's own system prints must not get into the answer.
        with contextlib.redirect_stdout(sys.stderr), progress_bar() as progress:
            training: dict[str, Any] = {"progress": progress, "checkpoint_seconds": checkpoint, "callbacks": callbacks}
            folder: dict[str, Any] = {"force": force, "tell": note, "weights": weights}
            if seeds is not None:
                seed_numbers = range(seed, seed + seeds)
                answer = run_seeds(configured, seed_numbers, benchmark, method, options, out, **folder, **training)
            elif out is None:
                answer = evaluating.evaluate_system(configured(seed), benchmark, method, options, **training).as_dict()
            else:
                run = runs.run_system(configured(seed), benchmark, method, options, out, **folder, **training)
                answer = run.as_dict()
            evaluating.notify(callbacks, "finished", evaluating.final_figures(answer))
        return answer

    if len(systems) > 1 or jobs is not None:
        _compare_systems(context, systems, system_settings, benchmark, (method, options), evaluated)
        return
    with say_resumable("" if out else None):
        answer = evaluated(systems[0], system_settings, out)
    _show(answer, json, out)


def _show(answer: Mapping[str, Any], json: bool, out: Path | None = None) -> None:
    if json:
        print_json(answer)
        return
    print_figures(answer)
    if out is not None:
        say(f"written to {out}")


# -- several systems --------------------------------------------------------------------------------


def _compare_systems(
    asked: typer.Context,
    systems: Sequence[str],
    settings: Mapping[str, Any],
    benchmark: Benchmark,
    request: tuple[str | None, MetricOptions],
    evaluate_here: Callable[[str, Mapping[str, Any], Path | None], dict[str, Any]],
) -> None:
    """Evaluate systems, each in a folder of its own; a failure does not stop the others.

    Several jobs are processes of their own; one job is done here, and what is known of the benchmark is used again.
    """
    from loginfer.evaluation.evaluating import configure_system
    from loginfer.evaluation.runs import load_run, request_of
    from loginfer.evaluation.seeds import check_parent, finished_run, seed_runs
    from loginfer.reproduction.planning import in_words
    from loginfer.reproduction.running import Commands, in_parallel

    commands, seeds, force = Commands(), asked.params["seeds"], asked.params["force"]
    out = Path(asked.params["out"]) if asked.params["out"] else None  # a text in some versions of Typer
    jobs = asked.params["jobs"] or os.cpu_count() or 1
    settings_by_system = settings_of_each(systems, settings)
    if out is not None:
        check_parent(out)
    shared = option_words(asked, ("system", "set", "mode", "workers", "jobs", "out", "json"))

    def evaluated(name: str) -> tuple[str, dict[str, Any]]:
        """Return what became of a system, and its answer."""
        started, run, kept = time.monotonic(), None, False
        folder, own_settings = None if out is None else system_folder(out, name), settings_by_system[name]
        words = ["evaluate", str(asked.params["bench"]), "--system", name, *shared, "--json"]
        words += [word for key, value in own_settings.items() for word in ("--set", f"{key}={value}")]
        words += [] if folder is None else ["--out", str(folder)]
        try:
            if folder is not None and seeds:
                kept = len(seed_runs(folder)) == seeds and not force
            elif folder is not None:
                about = {"seed": asked.params["seed"], "tuned": asked.params["tuned"]}
                wanted = request_of(configure_system(name, benchmark, own_settings, **about), benchmark, *request)
                run = finished_run(folder, wanted, request[1], force)
            if run is not None:
                answer = run.as_dict()
            elif jobs == 1:
                answer = evaluate_here(name, own_settings, folder)
            else:
                answer = json_format.loads(commands(words))
        except LogInferError as error:
            return f"failed: {error}", {"system": name, "error": error.message, "hint": error.hint}
        runs = [load_run(path, verify=False) for path in (seed_runs(folder) or [folder] if folder else ())]
        seconds = time.monotonic() - started
        state = "kept" if kept or run is not None else f"done in {in_words(seconds)}"
        return state, {**answer, "seconds": sum(run.seconds for run in runs) or seconds}

    answers: list[dict[str, Any]] = []
    with say_resumable(None if out is None else f" in {out}"):
        tasks = [partial(evaluated, name) for name in settings_by_system]
        for state, answer in in_parallel(tasks, jobs, commands.stop):
            answers.append(answer)
            note(f"[{len(answers)}/{len(tasks)}] {answer['system']} {state}")
    answers.sort(key=lambda answer: list(settings_by_system).index(answer["system"]))
    done = [answer for answer in answers if "error" not in answer]
    if asked.params["json"]:
        print_json(answers)
    elif done:
        print_comparison(done)
    if len(done) < len(tasks):
        note(f"error: {counted(len(tasks) - len(done), 'system')} of {len(tasks)} failed")
        raise typer.Exit(1)


def print_comparison(answers: Sequence[Mapping[str, Any]]) -> None:
    """Print evaluations beside each other, best first; see `comparison_rows` for what they must have."""
    from loginfer.evaluation.evaluating import settings_line
    from loginfer.evaluation.seeds import COUNTED, comparison_rows
    from loginfer.reproduction.planning import in_words

    def cells(row: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of a row by the titles of their columns."""
        low, high = (metric_text("balanced_accuracy", value) for value in row["interval"] or (None, None))
        accuracy = metric_text("balanced_accuracy", row["balanced_accuracy"])
        return {
            "benchmark": f"{row['benchmark']} {row['negatives'] or ''}" if len(places) > 1 else "-",
            "balanced accuracy": accuracy if low == "-" else f"{accuracy} ({low}–{high})",
            "best\nshortcut": metric_text("balanced_accuracy", row["shortcut_accuracy"]),
            "rules learned\n/ shortcut\n/ not / open": " / ".join(
                f"{row[key]:g}" for key in COUNTED if row[key] is not None
            ) or "-",
            "C-MRR": metric_text("c_mrr", row["c_mrr"]),
            "published\nC-MRR": metric_text("c_mrr", row["published_c_mrr"]),
            "time": "-" if row["seconds"] is None else in_words(row["seconds"]),
        }  # fmt: skip

    rows = comparison_rows(answers)
    places = list(dict.fromkeys(f"{row['benchmark']}, negatives {row['negatives'] or 'none'}" for row in rows))
    listed = [cells(row) for row in rows]
    columns = [title for title in listed[0] if any(texts[title] != "-" for texts in listed)]
    listing = table("system", *columns, numbers=columns[len(places) > 1 :])
    for row, texts in zip(rows, listed, strict=True):
        listing.add_row(row["system"], *(texts[title] for title in columns))
    console().print(f"{places[0] if len(places) == 1 else 'several benchmarks'}: {counted(len(rows), 'evaluation')}")
    console().print(listing)
    systems: dict[str, set[str]] = {}
    for answer in answers:
        systems.setdefault(settings_line(answer), set()).add(answer["system"])
    for line, names in sorted(systems.items()):
        if line:
            say(f"{', '.join(sorted(names))}: {line}")
    published = [answer["published"] for answer in answers if "c_mrr" in (answer.get("published") or {})]
    if sources := sorted({figures["source"] for figures in published}):
        say(f"published: {'; '.join(sources)}")
    shared = [note for note in answers[0].get("notes", ()) if all(note in other.get("notes", ()) for other in answers)]
    for remark in sentences(shared):
        say(f"note: {remark}")


# -- reading options --------------------------------------------------------------------------------


def _check_together(options: Mapping[str, Any]) -> None:
    sources = [name for name, value in options.items() if value is not None]
    if len(sources) > 1:
        raise InputError(f"{sources[0]} and {sources[1]} do not go together", hint="give one of them")
    if not sources:
        raise InputError(
            "no system to evaluate", hint="add --system NAME (see `loginfer systems list`), or --scores FILE"
        )


def _refuse_unused(**options: Any) -> None:
    """Complain about options that only a system has a use for."""
    for name, value in options.items():
        if value:
            raise InputError(f"--{name} needs a system to evaluate", hint="leave it out, or give --system NAME")


def _read_threshold(text: str) -> str | float:
    """Read a threshold: `global`, `relation` or a number."""
    try:
        return float(text)
    except ValueError:
        return _read_word(text)


def _read_word(text: str) -> str:
    """Read a name that is given in any case."""
    return text.strip().casefold().replace("-", "_")


def _read_protocols(text: str) -> tuple[str, ...]:
    words = [_read_word(part) for part in text.split(",") if part.strip()]
    return () if words == ["none"] else tuple(dict.fromkeys(words))


def settings_given(pairs: list[str], where: str = "--set", **short: Any) -> dict[str, Any]:
    """Return the settings of `--set key=value`, or another option, and of their short forms."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise InputError(f"`{pair}` is no setting", where=where, hint="write key=value, e.g. epochs=20")
        if key in settings:
            raise InputError(f"`{key}` is given twice", where=where)
        settings[key] = value
    for key, short_value in short.items():
        if short_value is not None:
            if key in settings:
                raise InputError(f"`{key}` is given twice: by --{key} and by --set")
            settings[key] = str(short_value)
    return settings


def system_names(texts: Sequence[str] | None) -> list[str]:
    """Return the systems of `--system a,b --system c`, each once."""
    return list(dict.fromkeys(name for text in texts or () for name in words_of(text)))


def settings_of_each(
    systems: Iterable[str], settings: Mapping[str, Any], where: str = "--set"
) -> dict[str, dict[str, Any]]:
    """Return the settings by system, each in those that have it."""
    from loginfer.settings import settings_of
    from loginfer.systems.registry import find_system

    with contextlib.redirect_stdout(sys.stderr):  # what a user's own module prints is not the answer
        declared = {entry.name: settings_of(entry.load()) for entry in map(find_system, systems)}
    known = set().union(*declared.values())
    for key in sorted(settings.keys() - known):
        of = "any of these systems" if len(declared) > 1 else next(iter(declared))
        raise UnknownNameError(f"setting of {of}", key, known, where=where)
    return {name: {key: settings[key] for key in settings if key in own} for name, own in declared.items()}


def system_folder(out: Path, name: str) -> Path:
    """Return where one of several systems has its folder."""
    return out / re.sub(r"[^\w.-]+", "-", name)


def score(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="The folder of a run, or of several seeds; several are compared."),
    ],
    benchmark: Annotated[
        Path | None, typer.Option("--benchmark", "-b", help="The run's benchmark: adds breakdowns and the diagnosis.")
    ] = None,
    threshold: ThresholdOption = None,
    criterion: CriterionOption = None,
    tie: TieOption = None,
    diagnosis: Annotated[
        bool | None, typer.Option("--diagnosis/--no-diagnosis", help="Look for learned rules and shortcuts.")
    ] = None,
    full_names: FullNamesOption = False,
    json: JsonOption = False,
) -> None:
    """Compute every metric of a run again from its saved predictions, without training.

    Thresholds, criterion and tie rule may be others than those of the run, which is not changed. Of a folder
    with several seeds it is mean and interval again. Several runs are compared in one table.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.evaluation.runs import load_run, options_of_run, score_run
    from loginfer.evaluation.seeds import SUMMARY, check_alike, seed_runs, summarise

    changed = {
        "threshold": None if threshold is None else _read_threshold(threshold),
        "criterion": None if criterion is None else _read_word(criterion),
        "tie": None if tie is None else _read_word(tie),
        "diagnosis": diagnosis,
    }
    loaded = None if benchmark is None else load_benchmark(benchmark)
    # What was learned is known from the run itself, if nothing else is asked for.
    as_it_was = len(runs) > 1 and loaded is None and all(value is None for value in changed.values())

    def scored(folder: Path) -> dict[str, Any]:
        parts = [load_run(part) for part in seed_runs(folder) or [folder]]
        check_alike(parts)
        answers = [
            run.as_dict() if as_it_was else run.answer(score_run(run, options_of_run(run, **changed), loaded))
            for run in parts
        ]
        answer = summarise(answers) if seed_runs(folder) else answers[0]
        return {**answer, "seconds": sum(run.seconds for run in parts)} if len(runs) > 1 else answer

    answers = [scored(folder) for folder in runs]
    if len(runs) == 1:
        _show(answers[0], json)
    elif json:
        print_json(answers)
    else:
        print_comparison(answers)
    if json:
        return
    for folder in runs:
        if seed_runs(folder) and not (folder / SUMMARY).exists():
            note(f"not all seeds of {folder} are finished")
    if benchmark is None and len(runs) == 1 and not seed_runs(runs[0]):
        note("with --benchmark DIR also by rule, and which rules were learned")


# Rules whose figures are shown: those that went worst.
WORST = 3


def print_figures(answer: Mapping[str, Any]) -> None:
    """Print an evaluation, or what several seeds have in common."""
    from loginfer.evaluation.evaluating import settings_line

    words = [f"{answer['system']} on {answer['benchmark']}"]
    if answer.get("negatives"):
        words.append(f"negatives {answer['negatives']}")
    seeds = [str(row["seed"]) for row in answer.get("seeds", ())]
    words.append(f"seeds {', '.join(seeds)}" if seeds else f"seed {answer['seed']}")
    say(", ".join(words))
    if text := settings_line(answer):
        say(text)
    _print_metrics(answer)
    _print_ranking(answer)
    for number, sentence in enumerate(sentences(answer.get("diagnosis", {}).get("summary", ()))):
        say(f"{'           ' if number else 'diagnosis: '}{sentence}", indent=2 if number else 13)
    parts = answer.get("breakdown", {})
    if parts.get("depths"):
        columns = ("depth", "test positives", "recall", "ROC AUC")
        _print_rows(
            columns,
            [
                (depth, f"{row['tp'] + row['fn']:,}", *(metric_text(key, row[key]) for key in ("recall", "roc_auc")))
                for depth, row in parts["depths"].items()
            ],
        )
    tested = [row for row in parts.get("rules", ()) if row["recall"] is not None]
    worst = sorted((row for row in tested if row["accuracy"] < 1), key=lambda row: (row["accuracy"], row["rule"]))
    if len(tested) > 1 and worst:
        keys = [key for key in ("accuracy", "recall", "twin_accuracy") if key in worst[0]]
        texts = rule_texts(row["rule"] for row in worst[:WORST])
        rows = [(*(metric_text(key, row[key]) for key in keys), text) for row, text in zip(worst, texts, strict=False)]
        shares = tuple(map(metric_title, keys))
        _print_rows((*shares, "worst rules"), rows, numbers=shares)
    for remark in sentences(answer.get("notes", ())):
        say(f"note: {remark}")


def _print_rows(
    columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], numbers: tuple[str, ...] | None = None
) -> None:
    """Print a table; all its columns are numbers unless some are named."""
    print_table(columns, list(rows), numbers=columns if numbers is None else numbers)


def _print_metrics(answer: Mapping[str, Any]) -> None:
    metrics, several = answer["metrics"], "seeds" in answer
    rows = []
    for name, title in shown_metrics(*TEST_GROUPS).items():
        if metrics.get(name) is None:
            continue
        cells = [metric_text(name, metrics[name])]
        if several:
            low, high = answer["interval"]["metrics"][name] or (None, None)
            cells.append(metric_text(name, answer["deviation"]["metrics"][name]))
            cells.append("-" if low is None else f"{metric_text(name, low)} to {metric_text(name, high)}")
        rows.append((title, *cells))
    if not rows:
        return
    columns = ("test", "deviation", "95 % interval") if several else ("test",)
    _print_rows(("metric", *columns), rows, numbers=columns)
    if answer.get("threshold") is not None:
        say(_threshold_text(answer))


def _threshold_text(answer: Mapping[str, Any]) -> str:
    value, about, several = f"{answer['threshold']:.4g}", answer["thresholds"], "seeds" in answer
    if about["criterion"] is None:
        return f"threshold {value}, given"
    criterion = f"chosen on valid for the best {metric_title(about['criterion'])}"
    if about["kind"] == "relation":
        many = "thresholds" if several else counted(len(about["relations"]), "threshold")
        return f"{many}, one for each relation, {criterion}"
    return f"threshold {value}{' in the mean' if several else ''}, {criterion}"


def _print_ranking(answer: Mapping[str, Any]) -> None:
    if not answer["ranking"]:
        return

    def mean_competitors(figures: Mapping[str, Any], *positions: str) -> str:
        by_position = [figures.get("competitors", {}).get(position) or {"mean": None} for position in positions]
        defined = [row for row in by_position if row["mean"] is not None]
        triples = sum(row["triples"] for row in defined)
        return f"{sum(row['mean'] * row['triples'] for row in defined) / triples:,.1f}" if triples else "-"

    titles = shown_metrics("ranking")
    numbers = (*titles.values(), "competitors")
    rows = []
    for protocol, figures in answer["ranking"].items():
        competitors = f"{mean_competitors(figures, 'subject', 'object')} / {mean_competitors(figures, 'relation')}"
        rows.append((protocol, *(metric_text(name, figures.get(name)) for name in titles), competitors))
    _print_rows(("ranking", *numbers), rows, numbers=numbers)
    say(f"ties are {answer.get('tie', 'realistic')}; competitors in the mean: constants / relations")
    if text := published_text(answer):
        say(text)


# -- answers ----------------------------------------------------------------------------------------


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, with what was learned.")],
    subject: Annotated[str | None, typer.Option("--subject", help="The subject of the triples.")] = None,
    relation: Annotated[
        str | None, typer.Option("--relation", help="Their relation; alone: its best triples that are new.")
    ] = None,
    object_: Annotated[str | None, typer.Option("--object", help="Their object.")] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Instead: a file of triples with `?` where they are open.")
    ] = None,
    top: Annotated[int, typer.Option("--top", "-t", help="Answers to each query, at most.", min=1)] = 10,
    new: Annotated[
        bool | None,
        typer.Option("--new/--known", help="Only triples that are in no set of the benchmark, or only those in one."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Of rule miners: the best rules for each answer, with a witness.")
    ] = False,
    benchmark: Annotated[
        Path | None, typer.Option("--benchmark", "-b", help="The run's benchmark, if it is not where it was.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the answers to this file, .tsv or .parquet.")
    ] = None,
    force: ForceOption = False,
    full_names: FullNamesOption = False,
    json: JsonOption = False,
) -> None:
    """Ask the system of a run for the best answers to a query: what is missing of a triple.

    Give two of subject, relation and object, or a relation alone. Names may be given by their last part or label where
    that is unambiguous. Scores are as the system gives them: higher is likelier. The status of an answer is the set of
    the benchmark that it is in, or `new`.
    """
    from loginfer.evaluation.score_files import table_ending
    from loginfer.predicting import predict as predict_triples

    if out is not None:
        if explain:
            raise InputError("a file of answers has no place for rules", hint="give --explain with --json instead")
        table_ending(out, "predictions")
        refuse_to_overwrite(out, force)
    with progress_bar() as progress:
        predicted = predict_triples(
            run, subject=subject, relation=relation, object=object_, queries=queries,
            top=top, new=new, explain=explain, benchmark=benchmark, progress=progress,
        )  # fmt: skip
    if out is not None:
        predicted.save(out, force=force)
    if json:
        print_json(predicted.as_dict() if out is None else {"out": str(out), "triples": len(predicted)})
    elif out is not None:
        say(f"{counted(len(predicted), 'triple')}, written to {out}")
    elif not len(predicted):
        note("there are no such answers")
    else:
        open_positions = [i for i, name in enumerate((subject, relation, object_)) if name is None]
        _print_answers(predicted, open_positions or [0, 1, 2])


def _print_answers(predicted: PredictedTriples, open_positions: list[int]) -> None:
    """Print the answers; where only some positions were open, the rest of the triple is said once."""
    names = ShownNames(predicted.graph)
    rows = list(predicted.rows())
    if len(open_positions) < 3:
        say(shown(tuple("?" if i in open_positions else rows[0][i] for i in range(3)), names))
    if predicted.rules is None:
        places = [*([6] if len(open_positions) == 3 else []), 3, 4, 5, *open_positions]
        figures = [(f"{row[3]:.5g}", "-" if row[4] is None else f"{row[4]:.3f}", row[5], str(row[6])) for row in rows]
        texts = [(*map(names.__getitem__, row[:3]), *values) for row, values in zip(rows, figures, strict=True)]
        cells = [[text[i] for i in places] for text in texts]
        print_table([predicted.columns[i] for i in places], cells, numbers=("query", "score", "confidence"))
        return
    for row, rules in zip(rows, predicted.rules, strict=True):
        say(f"{row[3]:.5g}  {row[5]}  {', '.join(names[row[i]] for i in open_positions)}")
        for rule in rules:
            say(f"  {rule.confidence:.4f}  {shown(rule.rule, names)}", indent=8)
            for premise in rule.premises:
                say(f"          because {shown(premise, names)}")


# -- systems ----------------------------------------------------------------------------------------

app = CommandGroup(help="The systems that can be evaluated, and their settings.")


@app.command("list", epilog="Example:  loginfer systems list")
def list_systems(json: JsonOption = False) -> None:
    """List the systems that have a name; a model of PyKEEN is pykeen:MODEL, your own my_module:MySystem."""
    from loginfer.systems.registry import systems

    entries = systems()
    if json:
        print_json([_about(entry) for entry in entries])
        return
    print_table(("system", "kind", ""), [(entry.name, entry.kind, entry.summary) for entry in entries])
    say("Any model of PyKEEN is a system as well: pykeen:MODEL; so is your own: my_module:MySystem.")


@app.command("show", epilog="Example:  loginfer systems show transe")
def show_system(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A system, pykeen:MODEL, or my_module:MySystem.")],
    json: JsonOption = False,
) -> None:
    """Show the settings of a system, and which patterns theory says it can capture."""
    from loginfer.settings import settings_of
    from loginfer.systems.registry import find_system, tuned_graphs

    entry = find_system(name)
    settings = settings_of(entry.load())
    if json:
        listed = [_setting(setting) for setting in settings.values()]
        print_json({**_about(entry), "settings": listed, "tuned": tuned_graphs(entry)})
        return
    say(f"{entry.title} ({entry.kind})")
    for line in (entry.summary, entry.reference):
        if line:
            say(line)
    if entry.captures:
        say("\nPatterns that it can capture, as far as theory knows:")
        for answer in dict.fromkeys(entry.captures.values()):
            patterns = [pattern for pattern, verdict in entry.captures.items() if verdict == answer]
            say(f"  {answer}: {', '.join(patterns)}")
    seeded = settings.pop("seed", None) is not None  # it has an option of its own
    listing = table("--set", "default", "values", "meaning")
    for setting in settings.values():
        listing.add_row(setting.name, _default(setting), _values(setting), setting.meaning)
    console().print(listing if settings else "\nIt has no settings.")
    if varied := [f"{setting.name}={setting.tuned}" for setting in settings.values() if setting.tuned]:
        say(f"`loginfer tune` varies {', '.join(varied)}")
    for graph, values in tuned_graphs(entry).items():
        texts = ", ".join(f"{name}={value}" for name, value in values.items())
        say(f"tuned for {graph}: {texts}")
    if seeded:
        say("--seed chooses all that is random.")


def _about(entry: SystemEntry) -> dict[str, Any]:
    about = {name: getattr(entry, name) for name in ("name", "title", "kind", "summary", "reference")}
    return {**about, "captures": dict(entry.captures), "aliases": list(entry.aliases), "class": entry.target}


def _setting(setting: Setting) -> dict[str, Any]:
    required = setting.default is Parameter.empty
    plain = setting.default is None or isinstance(setting.default, bool | int | float | str)
    default = None if required else setting.default if plain else str(setting.default)
    about = {"name": setting.name, "type": setting.kind, "default": default, "required": required}
    bounds = {"choices": list(setting.choices), "least": setting.least, "most": setting.most}
    return {**about, "meaning": setting.meaning, **bounds, "tuned": setting.tuned}


def _default(setting: Setting) -> str:
    if setting.default is Parameter.empty:
        return "must be given"
    text = str(setting.default)
    return text.lower() if isinstance(setting.default, bool | None) else text


def _values(setting: Setting) -> str:
    bounds = (("from", setting.least), ("to", setting.most))
    return " ".join([setting.kind, *(f"{word} {bound:g}" for word, bound in bounds if bound is not None)])
