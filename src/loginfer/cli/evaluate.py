"""`loginfer evaluate`, `loginfer score` and `loginfer systems`: how well systems do on benchmarks, and which there are.

Figures are shown to people in percent, ranking with its protocol, then what was learned.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import (
    ForceOption,
    JsonOption,
    console,
    counted,
    note,
    print_json,
    progress_bar,
    say_resumable,
    table,
)
from loginfer.errors import InputError
from loginfer.evaluation.metric_table import metric_text, metric_title, shown_metrics

if TYPE_CHECKING:
    from loginfer.evaluation.evaluating import ConfiguredSystem
    from loginfer.settings import Setting
    from loginfer.systems.registry import SystemEntry

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


def evaluate(
    bench: Annotated[
        Path, typer.Argument(metavar="BENCH", help="A benchmark's folder, ours or not.", show_default=False)
    ],
    system: Annotated[
        str | None,
        typer.Option(
            "--system", "-s", help="A name from `loginfer systems list`, pykeen:MODEL, or my_module:MySystem."
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the system; repeatable. See `systems show`."),
    ] = None,
    negatives: Annotated[
        str | None, typer.Option("--negatives", "-n", help="Whose negatives, if the benchmark has several.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all randomness.", min=0)] = 0,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="So many seeds, one run each; mean and interval.", min=1)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run's folder; without it nothing is kept.")
    ] = None,
    threshold: ThresholdOption = None,
    criterion: CriterionOption = None,
    ranking: Annotated[
        str, typer.Option("--ranking", help="Protocols: filtered, given, unfiltered; or none.")
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
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Train a system on a benchmark and evaluate it on test.

    With --out, the folder gets metrics, predictions, ranks, weights and the learning curve; a run that was
    interrupted or killed goes on where it was when the same command is given again.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.evaluation import evaluating, metrics, runs, score_files
    from loginfer.evaluation.seeds import run_seeds
    from loginfer.files import file_sum
    from loginfer.systems.interface import choose_method

    _check_together({"--system": system, "--scores": scores, "--export-queries": export_queries})
    if system is None:
        _refuse_unused(set=set, seeds=seeds, mode=mode, workers=workers)
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
            print(f"{counted(count, 'triple')} to be scored, written to {export_queries}")
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

    def configured(seed: int) -> ConfiguredSystem:
        return evaluating.configure_system(str(system), benchmark, system_settings, seed=seed, tuned=tuned)

    # What a user's own system prints must not get into the answer.
    with contextlib.redirect_stdout(sys.stderr):
        first = configured(seed)
        with say_resumable("" if out else None), progress_bar() as progress:
            training: dict[str, Any] = {"progress": progress, "checkpoint_seconds": checkpoint}
            folder: dict[str, Any] = {"force": force, "tell": note, "weights": weights}
            if seeds is not None:
                seed_numbers = range(seed, seed + seeds)
                answer = run_seeds(configured, seed_numbers, benchmark, method, options, out, **folder, **training)
            elif out is None:
                answer = evaluating.evaluate_system(first, benchmark, method, options, **training).as_dict()
            else:
                answer = runs.run_system(first, benchmark, method, options, out, **folder, **training).as_dict()
    _show(answer, json, out)


def _show(answer: Mapping[str, Any], json: bool, out: Path | None = None) -> None:
    if json:
        print_json(answer)
        return
    print_figures(answer)
    if out is not None:
        print(f"written to {out}")


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


def settings_given(pairs: list[str], **short: Any) -> dict[str, Any]:
    """Return the settings of `--set key=value`, and of their short forms."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise InputError(f"`{pair}` is no setting", where="--set", hint="write key=value, e.g. epochs=20")
        if key in settings:
            raise InputError(f"`{key}` is given twice", where="--set")
        settings[key] = value
    for key, short_value in short.items():
        if short_value is not None:
            if key in settings:
                raise InputError(f"`{key}` is given twice: by --{key} and by --set")
            settings[key] = str(short_value)
    return settings


def score(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run, or of several seeds.", show_default=False)
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
    json: JsonOption = False,
) -> None:
    """Compute every metric of a run again from its saved predictions, without training.

    Thresholds, criterion and tie rule may be others than those of the run, which is not changed. Of a folder
    with several seeds it is mean and interval again.
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
    seed_folders = seed_runs(run)
    loaded = None if benchmark is None else load_benchmark(benchmark)
    runs = [load_run(folder) for folder in seed_folders or [run]]
    check_alike(runs)
    answers = [seed_run.answer(score_run(seed_run, options_of_run(seed_run, **changed), loaded)) for seed_run in runs]
    _show(summarise(answers) if seed_folders else answers[0], json)
    if json:
        return
    if seed_folders and not (run / SUMMARY).exists():
        note(f"not all seeds of {run} are finished")
    if benchmark is None and not seed_folders:
        note("with --benchmark DIR also by rule, and which rules were learned")


# Rules whose figures are shown: those that went worst.
WORST = 3


def print_figures(answer: Mapping[str, Any]) -> None:
    """Print an evaluation, or what several seeds have in common."""
    show = console().print
    words = [f"{answer['system']} on {answer['benchmark']}"]
    if answer.get("negatives"):
        words.append(f"negatives {answer['negatives']}")
    seeds = [str(row["seed"]) for row in answer.get("seeds", ())]
    words.append(f"seeds {', '.join(seeds)}" if seeds else f"seed {answer['seed']}")
    show(", ".join(words))
    _print_metrics(answer)
    _print_ranking(answer)
    for number, sentence in enumerate(answer.get("diagnosis", {}).get("summary", ())):
        show(f"{'           ' if number else 'diagnosis: '}{sentence}")
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
        rows = [(*(metric_text(key, row[key]) for key in keys), row["rule"]) for row in worst[:WORST]]
        shares = tuple(map(metric_title, keys))
        _print_rows((*shares, "worst rules"), rows, numbers=shares)
    for remark in answer.get("notes", ()):
        show(f"note: {remark}")


def _print_rows(
    columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], numbers: tuple[str, ...] | None = None
) -> None:
    """Print a table; all its columns are numbers unless some are named."""
    listing = table(*columns, numbers=columns if numbers is None else numbers)
    for row in rows:
        listing.add_row(*row)
    console().print(listing)


def _print_metrics(answer: Mapping[str, Any]) -> None:
    metrics, several = answer["metrics"], "seeds" in answer
    rows = []
    for name, title in shown_metrics("classification", "pairs").items():
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
        console().print(_threshold_text(answer))


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
    console().print(f"ties are {answer.get('tie', 'realistic')}; competitors in the mean: constants / relations")


# -- systems ----------------------------------------------------------------------------------------

app = typer.Typer(help="The systems that can be evaluated, and their settings.", no_args_is_help=True)


@app.command("list", epilog="Example:  loginfer systems list")
def list_systems(json: JsonOption = False) -> None:
    """List the systems that have a name; a model of PyKEEN is pykeen:MODEL, your own my_module:MySystem."""
    from loginfer.systems.registry import systems

    entries = systems()
    if json:
        print_json([_about(entry) for entry in entries])
        return
    listing = table("system", "kind", "")
    for entry in entries:
        listing.add_row(entry.name, entry.kind, entry.summary)
    plain = console()
    plain.print(listing)
    plain.print("Any model of PyKEEN is a system as well: pykeen:MODEL; so is your own: my_module:MySystem.")


@app.command("show", epilog="Example:  loginfer systems show transe")
def show_system(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A system, pykeen:MODEL, or my_module:MySystem.", show_default=False)
    ],
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
    plain = console()
    plain.print(f"{entry.title} ({entry.kind})")
    for line in (entry.summary, entry.reference):
        if line:
            plain.print(line)
    if entry.captures:
        plain.print("\nPatterns that it can capture, as far as theory knows:")
        for answer in dict.fromkeys(entry.captures.values()):
            patterns = [pattern for pattern, verdict in entry.captures.items() if verdict == answer]
            plain.print(f"  {answer}: {', '.join(patterns)}")
    seeded = settings.pop("seed", None) is not None  # it has an option of its own
    listing = table("--set", "default", "values", "meaning")
    for setting in settings.values():
        listing.add_row(setting.name, _default(setting), _values(setting), setting.meaning)
    plain.print(listing if settings else "\nIt has no settings.")
    for graph, values in tuned_graphs(entry).items():
        texts = ", ".join(f"{name}={value}" for name, value in values.items())
        plain.print(f"tuned for {graph}: {texts}")
    if seeded:
        plain.print("--seed chooses all that is random.")


def _about(entry: SystemEntry) -> dict[str, Any]:
    about = {name: getattr(entry, name) for name in ("name", "title", "kind", "summary", "reference")}
    return {**about, "captures": dict(entry.captures), "aliases": list(entry.aliases), "class": entry.target}


def _setting(setting: Setting) -> dict[str, Any]:
    required = setting.default is Parameter.empty
    plain = setting.default is None or isinstance(setting.default, bool | int | float | str)
    default = None if required else setting.default if plain else str(setting.default)
    about = {"name": setting.name, "type": setting.kind, "default": default, "required": required}
    bounds = {"choices": list(setting.choices), "least": setting.least, "most": setting.most}
    return {**about, "meaning": setting.meaning, **bounds}


def _default(setting: Setting) -> str:
    if setting.default is Parameter.empty:
        return "must be given"
    text = str(setting.default)
    return text.lower() if isinstance(setting.default, bool | None) else text


def _values(setting: Setting) -> str:
    bounds = (("from", setting.least), ("to", setting.most))
    return " ".join([setting.kind, *(f"{word} {bound:g}" for word, bound in bounds if bound is not None)])
