"""Loginfer evaluate, score, systems.

`loginfer evaluate`: how well a system does on a benchmark.

`loginfer score`: the figures of a run again, from its predictions.

Showing figures to people: metrics in percent, ranking with its protocol, what was learned.

`loginfer systems`: what can be evaluated, with its settings.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import ForceOption, JsonOption, console, counted, note, print_json, progress_bar, table
from loginfer.errors import InputError
from loginfer.evaluation.metric_table import metric_text, metric_title, shown_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loginfer.benchmark import Benchmark
    from loginfer.evaluation import MetricOptions
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

RESUMABLE = "what is done so far is kept: the same command goes on from there"


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
    from loginfer.evaluation.metrics import MetricOptions
    from loginfer.systems.interface import choose_method

    _one_of(system, scores, export_queries)
    if system is None:
        _refuse_unused(set=set, seeds=seeds, mode=mode, workers=workers)
    if export_queries is not None:
        _refuse_unused(out=out)
    if name is not None and scores is None:
        raise InputError("--name is for a file of scores", hint="leave it out, or give --scores FILE")
    wanted = MetricOptions(
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

    print_figures(answer)
    if out is not None:
        print(f"written to {out}")


def _run(
    system: str,
    benchmark: Benchmark,
    method: str | None,
    wanted: MetricOptions,
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
    from loginfer.evaluation.evaluating import configure_system, evaluate_system
    from loginfer.evaluation.runs import run_system
    from loginfer.evaluation.seeds import run_seeds

    if "seed" in given:
        raise InputError("the seed has an option of its own", where="--set", hint="give --seed NUMBER")
    ready = configure_system(system, benchmark, given, seed=seed, tuned=tuned)
    with _resumable(out), progress_bar() as progress:
        options: dict[str, Any] = {"progress": progress, "checkpoint_seconds": checkpoint}
        if seeds is not None:

            def make(seed: int) -> Any:
                return configure_system(system, benchmark, given, seed=seed, tuned=tuned)

            chosen = range(seed, seed + seeds)
            options |= {"force": force, "tell": note, "weights": weights}
            return run_seeds(make, chosen, benchmark, method, wanted, out, **options)
        if out is None:
            return evaluate_system(ready, benchmark, method, wanted, **options).as_dict()
        options |= {"force": force, "tell": note, "weights": weights}
        made = run_system(ready, benchmark, method, wanted, out, **options)
        return made.as_dict()


def _score_file(
    scores: Path,
    benchmark: Benchmark,
    method: str | None,
    wanted: MetricOptions,
    name: str,
    out: Path | None,
    force: bool,
) -> dict[str, Any]:
    from loginfer.benchmark.folder.manifest import file_sum
    from loginfer.evaluation.evaluating import evaluate_scores
    from loginfer.evaluation.runs import check_run, request_of, write_run
    from loginfer.evaluation.score_files import read_scores

    if out is not None:
        check_run(out, force=force)
    predictions = read_scores(scores, benchmark, method)
    made = evaluate_scores(predictions, benchmark, wanted, name=name, settings={"sha256": file_sum(scores)})
    if out is not None:
        request = request_of(made.configured, benchmark, method, wanted)
        write_run(made, request, out, options=wanted, force=force)
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
            "no system to evaluate", hint="add --system NAME (see `loginfer systems list`), or --scores FILE"
        )


def _refuse_unused(**options: Any) -> None:
    """Complain about options that only a system has a use for."""
    for name, value in options.items():
        if value:
            raise InputError(f"--{name} needs a system to evaluate", hint="leave it out, or give --system NAME")


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
        "threshold": None if threshold is None else threshold_of(threshold),
        "criterion": None if criterion is None else word(criterion),
        "tie": None if tie is None else word(tie),
        "diagnosis": diagnosis,
    }
    several = seed_runs(run)
    whole = None if benchmark is None else load_benchmark(benchmark)
    runs = [load_run(folder) for folder in several or [run]]
    check_alike(runs)
    answers = [found.answer(score_run(found, options_of_run(found, **changed), whole)) for found in runs]
    answer = summarise(answers) if several else answers[0]
    if json:
        print_json(answer)
        return

    print_figures(answer)
    if several and not (run / SUMMARY).exists():
        note(f"not all seeds of {run} are finished")
    if benchmark is None and not several:
        note("with --benchmark DIR also by rule, and which rules were learned")


# Rules whose figures are shown: those that went worst.
WORST = 3


def print_figures(answer: Mapping[str, Any]) -> None:
    """Print an evaluation, or what several seeds have in common."""
    plain = console()
    plain.print(_heading(answer))
    _print_metrics(answer)
    _print_ranking(answer)
    for place, sentence in enumerate(answer.get("diagnosis", {}).get("summary", ())):
        plain.print(f"{'           ' if place else 'diagnosis: '}{sentence}")
    _print_depths(answer)
    _print_worst(answer)
    for remark in answer.get("notes", ()):
        plain.print(f"note: {remark}")


def _heading(answer: Mapping[str, Any]) -> str:
    words = [f"{answer['system']} on {answer['benchmark']}"]
    if answer.get("negatives"):
        words.append(f"negatives {answer['negatives']}")
    if "seeds" in answer:
        words.append("seeds " + ", ".join(str(each["seed"]) for each in answer["seeds"]))
    else:
        words.append(f"seed {answer['seed']}")
    return ", ".join(words)


def _print_metrics(answer: Mapping[str, Any]) -> None:
    metrics = answer["metrics"]
    there = {name: title for name, title in shown_metrics("classification").items() if metrics.get(name) is not None}
    if not there:
        return
    several = "seeds" in answer
    columns = ("test", "deviation", "95 % interval") if several else ("test",)
    shown = table("metric", *columns, numbers=columns)
    for name, title in there.items():
        cells = [metric_text(name, metrics[name])]
        if several:
            low, high = answer["interval"]["metrics"][name] or (None, None)
            cells.append(metric_text(name, answer["deviation"]["metrics"][name]))
            cells.append("-" if low is None else f"{metric_text(name, low)} to {metric_text(name, high)}")
        shown.add_row(title, *cells)
    console().print(shown)
    if answer.get("threshold") is not None:
        console().print(_threshold(answer))


def _threshold(answer: Mapping[str, Any]) -> str:
    value = f"{answer['threshold']:.4g}"
    about = answer["thresholds"]
    if about["criterion"] is None:
        return f"threshold {value}, given"
    chosen = f"chosen on valid for the best {metric_title(about['criterion'])}"
    several = "seeds" in answer
    if about["kind"] == "relation":
        many = "thresholds" if several else counted(len(about["relations"]), "threshold")
        return f"{many}, one for each relation, {chosen}"
    return f"threshold {value}{' in the mean' if several else ''}, {chosen}"


def _print_ranking(answer: Mapping[str, Any]) -> None:
    ranking = answer["ranking"]
    if not ranking:
        return
    titles = shown_metrics("ranking")
    numbers = (*titles.values(), "competitors")
    shown = table("ranking", *numbers, numbers=numbers)
    for protocol, figures in ranking.items():
        cells = [metric_text(name, figures.get(name)) for name in titles]
        shown.add_row(protocol, *cells, _competitors(figures.get("competitors", {})))
    console().print(shown)
    console().print(f"ties are {answer.get('tie', 'realistic')}; competitors in the mean: constants / relations")


def _competitors(found: Mapping[str, Any]) -> str:
    def mean(*positions: str) -> str:
        known = [found[p] for p in positions if p in found and found[p]["mean"] is not None]
        count = sum(each["triples"] for each in known)
        if not count:
            return "-"
        return f"{sum(each['mean'] * each['triples'] for each in known) / count:,.1f}"

    return f"{mean('subject', 'object')} / {mean('relation')}"


def _print_depths(answer: Mapping[str, Any]) -> None:
    """Print how well conclusions are found that follow in so many steps."""
    depths = answer.get("breakdown", {}).get("depths", {})
    if not depths:
        return
    columns = ("depth", "test positives", "recall", "ROC AUC")
    shown = table(*columns, numbers=columns)
    for depth, row in depths.items():
        found = f"{row['tp'] + row['fn']:,}"
        shown.add_row(depth, found, _percent(row["recall"]), _percent(row["roc_auc"]))
    console().print(shown)


def _print_worst(answer: Mapping[str, Any]) -> None:
    """Print the rules of which most went wrong, among those that have conclusions in test."""
    rules = [row for row in answer.get("breakdown", {}).get("rules", ()) if row["recall"] is not None]
    wrong = [row for row in rules if row["accuracy"] < 1]
    if len(rules) < 2 or not wrong:
        return
    wrong.sort(key=lambda row: (row["accuracy"], row["rule"]))
    shown = table("accuracy", "recall", "worst rules", numbers=("accuracy", "recall"))
    for row in wrong[:WORST]:
        shown.add_row(_percent(row["accuracy"]), _percent(row["recall"]), row["rule"])
    console().print(shown)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


app = typer.Typer(help="The systems that can be evaluated, and their settings.", no_args_is_help=True)


@app.command("list", epilog="Example:  loginfer systems list")
def list_systems(json: JsonOption = False) -> None:
    """List the systems that have a name; a model of PyKEEN is pykeen:MODEL, your own my_module:MySystem."""
    from loginfer.systems.registry import systems

    known = systems()
    if json:
        print_json([_about(entry) for entry in known])
        return
    shown = table("system", "kind", "")
    for entry in known:
        shown.add_row(entry.name, entry.kind, entry.summary)
    plain = console()
    plain.print(shown)
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
        listed = [_setting(known) for known in settings.values()]
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
            patterns = [pattern for pattern, found in entry.captures.items() if found == answer]
            plain.print(f"  {answer}: {', '.join(patterns)}")
    seeded = settings.pop("seed", None) is not None  # it has an option of its own
    shown = table("--set", "default", "values", "meaning")
    for known in settings.values():
        shown.add_row(known.name, _default(known), _values(known), known.meaning)
    plain.print(shown if settings else "\nIt has no settings.")
    for graph, values in tuned_graphs(entry).items():
        chosen = ", ".join(f"{name}={value}" for name, value in values.items())
        plain.print(f"tuned for {graph}: {chosen}")
    if seeded:
        plain.print("--seed chooses all that is random.")


def _about(entry: SystemEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "kind": entry.kind,
        "summary": entry.summary,
        "reference": entry.reference,
        "captures": dict(entry.captures),
        "aliases": list(entry.aliases),
        "class": entry.target,
    }


def _setting(known: Setting) -> dict[str, Any]:
    required = known.default is Parameter.empty
    plain = known.default is None or isinstance(known.default, bool | int | float | str)
    return {
        "name": known.name,
        "type": known.kind,
        "default": None if required else known.default if plain else str(known.default),
        "required": required,
        "meaning": known.meaning,
        "choices": list(known.choices),
        "least": known.least,
        "most": known.most,
    }


def _default(known: Setting) -> str:
    if known.default is Parameter.empty:
        return "must be given"
    text = str(known.default)
    return text.lower() if isinstance(known.default, bool | None) else text


def _values(known: Setting) -> str:
    bounds = []
    if known.least is not None:
        bounds.append(f"from {known.least:g}")
    if known.most is not None:
        bounds.append(f"to {known.most:g}")
    return " ".join([known.kind, *bounds])
