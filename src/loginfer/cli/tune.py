"""`loginfer tune`: which settings a system does well with."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from loginfer.cli.common import ForceOption, JsonOption, note, print_json, print_table, progress_bar, say, say_resumable
from loginfer.cli.evaluate import settings_given, settings_of_each, system_folder, system_names
from loginfer.errors import InputError


def tune(
    benches: Annotated[
        list[Path],
        typer.Argument(
            metavar="BENCH...",
            help="Benchmarks, or names of `loginfer kg list`; their mean counts. With --collect: folders of tunings.",
        ),
    ],
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            "--systems",
            "-s",
            metavar="NAME",
            help="Of `loginfer systems list`; several, a,b,c, have equal budgets, each in a folder of its own.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", help="How many settings to try, of each system.", min=1)] = 20,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=RANGE",
            help="Only this: 2:5, 0.005:0.03:log or a,b,c; repeatable. By default what the system declares.",
        ),
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting that stays; repeatable.")
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Short for --set epochs=….", min=1)] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Begin no trial of a system after so many CPU seconds.", min=0)
    ] = None,
    negatives: Annotated[
        str | None, typer.Option("--negatives", "-n", help="Whose negatives, if a benchmark has several.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all randomness.", min=0)] = 0,
    collect: Annotated[
        bool, typer.Option("--collect", help="Make a tuned.toml of the best settings in such folders.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder; with --collect the file, by default printed.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Look for settings with which systems do well on valid; test is never looked at.

    Trials are kept: the same command goes on where it was, also with more --trials.
    """
    from loginfer import tuning
    from loginfer.evaluation.evaluating import settings_words
    from loginfer.evaluation.metric_table import metric_text
    from loginfer.files import write_text

    if collect:
        text = tuning.collect(benches)
        if out is None:
            print(text, end="")
            return
        write_text(out, text, force=force)
        say(f"written to {out}")
        return
    systems = system_names(system)
    if not systems or out is None:
        missing = "--out FOLDER" if systems else "--system NAME"
        raise InputError(f"{missing.split(' ')[0]} is missing", hint=f"add {missing}")
    settings = settings_of_each(systems, settings_given(set or [], epochs=epochs))
    ranges = settings_of_each(systems, settings_given(vary or [], where="--vary"), where="--vary")
    several = len(settings) > 1
    answers: dict[str, dict[str, Any]] = {}
    with say_resumable(f" in {out}"), contextlib.redirect_stdout(sys.stderr), progress_bar() as progress:
        for name in settings:
            if several:
                note(f"{name}:")
            answers[name] = tuning.tune(
                benches, name, system_folder(out, name) if several else out, trials=trials, vary=ranges[name],
                settings=settings[name], negatives=negatives, seconds=seconds, seed=seed, force=force, tell=note,
                progress=progress,
            )  # fmt: skip
    if json:
        print_json(list(answers.values()) if several else answers[name])
        return
    listed = [
        (name, number, trial)
        for name, answer in answers.items()
        for number, trial in enumerate(answer["trials"], start=1)
        if not several or number == answer["best"]["trial"]
    ]
    columns = ("worth", "accuracy", "C-MRR", "trial")
    titles = (*columns, *(["system"] if several else []), "settings")
    rows = []
    for name, number, trial in sorted(listed, key=lambda row: -(row[2]["worth"] or 0)):
        means = [_mean(trial["figures"], key) for key in ("accuracy", "c_mrr")]
        texts = [metric_text("accuracy", share) for share in (trial["worth"], *means)]
        words = settings_words(trial["settings"]) + (f"; failed: {trial['error']}" if "error" in trial else "")
        rows.append((*texts, str(number), *([name] if several else []), words))
    print_table(titles, rows, numbers=columns)
    for name, answer in answers.items():
        best = [word for key, value in answer["best"]["settings"].items() for word in ("--set", f"{key}={value}")]
        # Trials never have the settings that are shipped, unless they try these.
        say(f"best: {shlex.join(['--system', name, '--no-tuned', *best])}")


def _mean(figures: list[dict[str, float]], name: str) -> float | None:
    """Return the mean over benchmarks; None if some have no such figure."""
    values = [benchmark[name] for benchmark in figures if name in benchmark]
    return sum(values) / len(values) if values and len(values) == len(figures) else None
