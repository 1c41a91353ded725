"""What a notebook shows for an evaluation or a run: metrics, ranks, what became of each rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loginfer.evaluation.diagnosis import VERDICTS
from loginfer.evaluation.metric_table import TEST_GROUPS, metric_text, metric_title, published_text, shown_metrics
from loginfer.kg.vocabulary import short_names
from loginfer.logic.rule import names_in, prose, text_markup
from loginfer.notebook import Markup, element, facts, fragment, joined, listing, percent, table

_KINDS = {"learned": "good", "untested": "middling", "in part": "middling", "shortcut": "bad", "not learned": "bad"}


def evaluation_fragment(answer: Mapping[str, Any]) -> str:
    """Return what a notebook shows for an evaluation, given as `Evaluation.as_dict` does."""
    diagnosis = answer.get("diagnosis") or {}
    return fragment(
        element("div", f"{answer['system']} on {answer['benchmark']}", kind="title"),
        facts(_facts(answer)),
        _metrics(answer["metrics"]),
        _ranking(answer["ranking"]),
        listing(filter(None, [published_text(answer)])),
        _diagnosis(diagnosis),
        listing(prose(note) for note in answer.get("notes", ())),
    )


def diagnosis_fragment(diagnosis: Mapping[str, Any]) -> str:
    """Return what a notebook shows for a diagnosis, given as `Diagnosis.as_dict` does."""
    return fragment(_diagnosis(diagnosis))


def plain(answer: Mapping[str, Any]) -> str:
    """Return an evaluation on one line."""
    words = [f"{answer['system']!r} on {answer['benchmark']!r}"]
    words += [f"negatives {answer['negatives']}"] if answer["negatives"] else []
    metrics = {metric_title(name): answer["metrics"].get(name) for name in ("accuracy", "roc_auc")}
    words += [f"{name} {percent(value)} %" for name, value in metrics.items() if value is not None]
    return ", ".join(words)


def _facts(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("negatives"):
        yield f"negatives {answer['negatives']}"
    yield f"seed {answer['seed']}" if "seeds" not in answer else f"means of {len(answer['seeds'])} seeds"
    about = answer.get("thresholds")
    if about is None:
        return
    value = f"threshold {answer['threshold']:.4g}"
    if about["criterion"] is None:
        yield f"{value}, given"
        return
    text = "one threshold for each relation" if about["kind"] == "relation" else value
    yield f"{text}, chosen on valid for the best {metric_title(about['criterion'])}"


def _metrics(metrics: Mapping[str, float | None]) -> Markup:
    shown = shown_metrics(*TEST_GROUPS)
    titles = {name: title for name, title in shown.items() if metrics.get(name) is not None}
    if not titles:
        return Markup("")
    columns = ["classification, %", *titles.values()]
    return table(columns, [["test", *(metric_text(name, metrics[name]) for name in titles)]], numbers=columns[1:])


def _ranking(ranking: Mapping[str, Mapping[str, Any]]) -> Markup:
    if not ranking:
        return Markup("")
    titles = shown_metrics("ranking")
    columns = ["ranking, %", *titles.values()]
    rows = [[p, *(metric_text(name, figures.get(name)) for name in titles)] for p, figures in ranking.items()]
    return table(columns, rows, numbers=columns[1:])


def _diagnosis(diagnosis: Mapping[str, Any]) -> Markup:
    rules = diagnosis.get("rules", ())
    summary = listing(prose(text) for text in diagnosis.get("summary", ()))
    if not rules:
        return summary
    columns: tuple[str, ...] = ("verdict", "rule", "recall, %", "found", "instead")
    names = short_names(names_in(*(text for row in rules for text in (row["rule"], row["text"]))))
    rows = [_rule(row, names) for row in sorted(rules, key=lambda row: VERDICTS.index(row["verdict"]))]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return joined(summary, table(columns, rows, numbers=("recall, %", "found")))


def _rule(row: Mapping[str, Any], names: Mapping[str, str]) -> Sequence[str]:
    verdict = row["verdict"]
    recalled = f"{row['predicted']:,} of {row['conclusions']:,}"
    mark = element("span", verdict, kind=_KINDS.get(verdict, "quiet"))
    instead = ""
    if verdict in ("shortcut", "untested"):
        instead = text_markup(row["text"].removeprefix("learned the shortcut "), names)
    return mark, text_markup(row["rule"], names), percent(row["recall"]), recalled, instead
