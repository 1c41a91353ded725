"""Showing figures to people: metrics in percent, ranking with its protocol, what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loginfer.cli.common import console, counted, table
from loginfer.evaluation.figure_names import METRICS, RANKING

__all__ = ["print_figures"]

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
    there = [name for name in METRICS if metrics.get(name) is not None]
    if not there:
        return
    several = "seeds" in answer
    columns = ("test", "deviation", "95 % interval") if several else ("test",)
    shown = table("metric", *columns, numbers=columns)
    for name in there:
        cells = [_percent(metrics[name])]
        if several:
            deviation = answer["deviation"]["metrics"][name]
            cells += [_percent(deviation), _range(answer["interval"]["metrics"][name])]
        shown.add_row(METRICS[name], *cells)
    console().print(shown)
    if answer.get("threshold") is not None:
        console().print(_threshold(answer))


def _threshold(answer: Mapping[str, Any]) -> str:
    value = f"{answer['threshold']:.4g}"
    about = answer["thresholds"]
    if about["criterion"] is None:
        return f"threshold {value}, given"
    chosen = f"chosen on valid for the best {METRICS[about['criterion']]}"
    several = "seeds" in answer
    if about["kind"] == "relation":
        many = "thresholds" if several else counted(len(about["relations"]), "threshold")
        return f"{many}, one for each relation, {chosen}"
    return f"threshold {value}{' in the mean' if several else ''}, {chosen}"


def _print_ranking(answer: Mapping[str, Any]) -> None:
    ranking = answer["ranking"]
    if not ranking:
        return
    names = list(RANKING.values())
    shown = table("ranking", *names, "competitors", numbers=(*names, "competitors"))
    for protocol, figures in ranking.items():
        cells = [_percent(figures.get(name)) for name in RANKING]
        shown.add_row(protocol, *cells, _competitors(figures.get("competitors", {})))
    console().print(shown)
    console().print(
        f"ties are {answer.get('tie', 'realistic')}; competitors in the mean: constants / relations"
    )


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


def _range(interval: list[float] | None) -> str:
    return "-" if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"
