"""The answer in words: which system learns which pattern, and where it only takes shortcuts.

What a system made of a benchmark follows from its accuracy, the best shortcut's, and the diagnosis of its rules:

    learned      above the best shortcut, and most rules are learned as far as the negatives tell
    in part      above the best shortcut, but fewer rules are learned
    above        above the best shortcut, but the rules are not known, or no negatives test them
    shortcut     not above the best shortcut, and some rules are replaced by one; or most rules are
    not learned  of most rules not even half of the conclusions are predicted; or not above the best shortcut, and
                 none is learned
    cannot tell  not above the best shortcut otherwise
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from loginfer.logic.patterns import PATTERN_NAMES
from loginfer.report import facts
from loginfer.report.collection import Cell, Collection

Outcome = Literal["learned", "above", "in part", "cannot tell", "shortcut", "not learned"]

# What is said of a system, before the names of benchmarks.
_WORDS: Mapping[Outcome, str] = {
    "learned": "learns",
    "above": "is above the best shortcut on",
    "in part": "partly learns",
    "cannot tell": "cannot be told from a shortcut on",
    "shortcut": "only takes shortcuts on",
    "not learned": "does not learn",
}

# It knows the rules: the others are held against it.
ORACLE = "oracle"
# What a single benchmark is called in the answer.
_RULES = "the rules"
# So many names stand in a list; so many benchmarks come with figures.
_LISTED, _DETAILED = 5, 4


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """What a system made of a benchmark.

    Parameters
    ----------
    cell
        Its runs.
    value
        Balanced accuracy, the mean over the seeds.
    shortcut
        The best shortcut; None where that is not known.
    rules
        How many rules have each verdict of the diagnosis; empty without one.
    """

    cell: Cell
    value: float
    shortcut: facts.ShortcutFigure | None = None
    rules: Mapping[str, int] = field(default_factory=dict)

    @property
    def tested(self) -> int:
        """How many rules have enough conclusions in test."""
        return sum(count for verdict, count in self.rules.items() if verdict != "not testable")

    @property
    def outcome(self) -> Outcome | None:
        """What it comes to (see the head of this file); None where neither rules nor shortcuts are known."""
        low, high = (0.0, 0.0) if self.shortcut is None else self.shortcut.interval or (self.shortcut.value,) * 2
        above = self.value > high
        if not self.tested:
            return None if self.shortcut is None else "above" if above else "cannot tell"

        def most(*verdicts: str) -> bool:
            return 2 * sum(self.rules.get(verdict, 0) for verdict in verdicts) > self.tested

        if most("learned", "untested") and self.value >= low:
            return "cannot tell" if not above else "learned" if self.rules.get("learned") else "above"
        if most("not learned"):
            return "not learned"
        if most("shortcut") or (self.rules.get("shortcut") and not above):
            return "shortcut"
        if above:
            return "in part"
        return "cannot tell" if self.rules.get("learned") or not most("in part", "not learned") else "not learned"

    @property
    def learned_text(self) -> str:
        """How many rules are learned; empty without a diagnosis."""
        return f"{self.rules.get('learned', 0)} of {self.tested} rules" if self.tested else ""

    @property
    def text(self) -> str:
        """Its accuracy beside the best shortcut, and what became of the rules."""
        words = {"untested": "not told from a shortcut", "shortcut": "replaced by a shortcut"}
        more = [f", {count} {word}" for verdict, word in words.items() if (count := self.rules.get(verdict))]
        best = "" if self.shortcut is None else f", best shortcut {facts.share_text(self.shortcut.value)} %"
        rules = f"; {self.learned_text} learned{''.join(more)}" if self.tested else ""
        return f"{facts.share_text(self.value)} %{best}{rules}"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The answer of a report.

    Parameters
    ----------
    headline
        One sentence: which patterns are learned by which systems, and who only takes shortcuts.
    systems
        A sentence for each system, by the report's name for it; the best first, the oracle last.
    shortcuts
        What the best shortcut reaches on each of several benchmarks; of one alone the systems' sentences say it.
    """

    headline: str
    systems: Mapping[str, str]
    shortcuts: str = ""


def verdicts(collection: Collection) -> Verdicts:
    """Return the answer in words: which systems learn which patterns, and where they only take shortcuts."""
    return verdicts_in(cell_verdicts(facts.ReportContext(collection, facts.ReportOptions(audits=False))))


@facts.once_per_report
def cell_verdicts(context: facts.ReportContext) -> list[CellVerdict]:
    """Return what each system made of each benchmark, in the report's order."""

    def made_of(cell: Cell, value: float) -> CellVerdict:
        shortcuts = [] if context.collection.light else facts.shortcut_figures(context, cell.benchmark)
        rules = {verdict: count for verdict, count in facts.diagnosis_of(cell).get("verdicts", {}).items() if count}
        return CellVerdict(cell, value, next(iter(shortcuts), None), rules)

    values = [(cell, cell.mean("balanced_accuracy")) for cell in context.collection.cells]
    return [made_of(cell, value) for cell, value in values if value is not None]


def verdicts_in(cells: Sequence[CellVerdict]) -> Verdicts:
    """Return the answer in words (see `verdicts`)."""
    labels = facts.benchmark_labels(list(dict.fromkeys(verdict.cell.benchmark for verdict in cells)))
    labels = {name: re.sub(r", (\w+)$", r" \1", label) for name, label in labels.items()}  # lists have commas
    by_system: dict[str, list[CellVerdict]] = {}
    for verdict in cells:
        by_system.setdefault(verdict.cell.system, []).append(verdict)
    ordered = sorted(by_system, key=lambda system: _order(by_system[system]))
    sentences = {system: _sentence(by_system[system], labels) for system in ordered}
    judged = [verdict for system in ordered for verdict in by_system[system] if verdict.cell.name != ORACLE]
    best = {v.cell.benchmark: v.shortcut.value for v in cells if v.shortcut is not None} if len(labels) > 1 else {}
    shortcuts = _listed(f"{facts.share_text(value)} % on {labels[benchmark]}" for benchmark, value in best.items())
    return Verdicts(_headline(judged, labels), sentences, shortcuts)


def ranked_in(cells: Sequence[Cell]) -> Verdicts:
    """Return the answer where no triple is judged, as on standard splits: who ranks best, beside what is published."""
    protocol = next(iter(facts.protocols_of(cells)), None)
    figure = facts.Figure("c_mrr", "C-MRR", protocol)
    values = [(cell, value) for cell in cells if protocol and (value := cell.mean("c_mrr", protocol)) is not None]
    values.sort(key=lambda pair: -pair[1])
    labels = facts.benchmark_labels(list(dict.fromkeys(cell.benchmark for cell, _ in values)))
    best, texts = dict[str, str](), dict[str, list[str]]()
    for cell, value in values:
        best.setdefault(cell.benchmark, system_title(cell))
        published = facts.paper_figure(cell, figure)
        beside = "" if published is None else f", published {facts.share_text(published)} %"
        where = f" on {labels[cell.benchmark]}" if len(labels) > 1 else ""
        texts.setdefault(cell.system, []).append(f"C-MRR{where} {facts.share_text(value)} %{beside}")
    won = {title: [labels[name] for name in best if best[name] == title] for title in best.values()}
    headline = "; ".join(f"{title} ranks best on {_listed(names)}" for title, names in won.items())
    sentences = {system: "; ".join(parts) for system, parts in texts.items()}
    return Verdicts(f"{headline}." if values else _headline([], {}), sentences)


def system_title(cell: Cell) -> str:
    """Return a system's title, or the report's name where that says more."""
    entry = facts.entry_of(cell.name)
    return cell.system if entry is None else cell.system.replace(cell.name, entry.title, 1)


def _order(of_system: Sequence[CellVerdict]) -> tuple[bool, float, str]:
    mean = facts.mean_of_known(verdict.value for verdict in of_system) or 0
    return of_system[0].cell.name == ORACLE, -mean, of_system[0].cell.system


def _sentence(of_system: Sequence[CellVerdict], labels: Mapping[str, str]) -> str:
    first, several = of_system[0], len(labels) > 1
    mean = facts.share_text(facts.mean_of_known(verdict.value for verdict in of_system))
    mean = f"{mean} %{' in the mean' if several else ''}"
    if first.cell.name == ORACLE:
        return f"{mean}; it knows the rules"
    if not several:
        return first.text
    parts = []
    for outcome, words in _WORDS.items():
        alike = [verdict for verdict in of_system if verdict.outcome == outcome]
        names = [labels[verdict.cell.benchmark] for verdict in alike]
        if len(labels) <= _DETAILED:
            rules = [_rules_text(v) if outcome in ("learned", "in part") else "" for v in alike]
            figures = [f"{facts.share_text(v.value)} %{text}" for v, text in zip(alike, rules, strict=True)]
            names = [f"{name} ({figure})" for name, figure in zip(names, figures, strict=True)]
        parts += [f"{words} {_listed(names)}"] if alike else []
    return "; ".join([mean, *parts])


def _rules_text(verdict: CellVerdict) -> str:
    """Return how many rules are learned, in part, and nobody can tell; empty without a diagnosis."""
    more = [f", {count} {word}" for word in ("in part", "untested") if (count := verdict.rules.get(word))]
    return f", {verdict.learned_text}{''.join(more)}" if verdict.tested else ""


def _headline(judged: Sequence[CellVerdict], labels: Mapping[str, str]) -> str:
    """Answer in one sentence; systems stand best first."""
    if not labels:
        return "No run decides about triples: nothing to say."
    if not judged:
        return "Only the oracle ran, which knows the rules."
    if not any(verdict.outcome for verdict in judged):
        return f"{system_title(judged[0].cell)} has the best balanced accuracy; what it learned is not known."
    if len(labels) == 1:
        text = _answer(judged, dict.fromkeys(labels, _RULES)).replace(f" on {_RULES}", "")
        return f"On {next(iter(labels))}: {text}."
    text = _answer(judged, labels)
    return f"{text[:1].upper()}{text[1:]}."


def _answer(judged: Sequence[CellVerdict], labels: Mapping[str, str]) -> str:
    outcomes: dict[str, set[Outcome | None]] = {}
    for verdict in judged:
        outcomes.setdefault(verdict.cell.benchmark, set()).add(verdict.outcome)
    unlearned = {b: has for b, has in outcomes.items() if not has & {"learned", "above"}}
    solved = [labels[b] for b, has in unlearned.items() if "cannot tell" in has]
    nobody = [labels[b] for b, has in unlearned.items() if "cannot tell" not in has]
    parts = [*_who(judged, "learned", labels), *_who(judged, "above", labels)]
    parts += [f"no system learns {_listed(nobody)}"] if nobody else []
    parts += [f"no system is above the best shortcut on {_listed(solved)}"] if solved else []
    return "; ".join(parts + _who(judged, "shortcut", labels))


def _who(judged: Sequence[CellVerdict], outcome: Outcome, labels: Mapping[str, str]) -> list[str]:
    """Return which systems have an outcome on which benchmarks; those with the same benchmarks together."""
    by_system: dict[str, list[str]] = {}
    for verdict in judged:
        if verdict.outcome == outcome:
            by_system.setdefault(system_title(verdict.cell), []).append(labels[verdict.cell.benchmark])
    by_benchmarks: dict[str, list[str]] = {}
    noun = "patterns" if set(labels.values()) <= set(PATTERN_NAMES) else "benchmarks"
    everywhere = f"both {noun}" if len(labels) == 2 else f"all {len(labels)} {noun}"
    for title, benchmarks in by_system.items():
        names = everywhere if len(benchmarks) == len(labels) > 1 else _listed(benchmarks)
        by_benchmarks.setdefault(names, []).append(title)
    return [f"{_agree(titles, _WORDS[outcome])} {names}" for names, titles in by_benchmarks.items()]


def _agree(names: Sequence[str], words: str) -> str:
    """Return who does what; several systems `learn`, `take`, `are` and `do not`."""
    plural = {} if len(names) == 1 else {"is": "are", "does": "do", "learns": "learn", "takes": "take"}
    return " ".join([_listed(names), *(plural.get(word, word) for word in words.split())])


def _listed(names: Iterable[str]) -> str:
    """Return names as people list them; of many the first ones."""
    shown = list(names)
    if len(shown) > _LISTED:
        shown[_LISTED - 1 :] = [f"{len(shown) - _LISTED + 1} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
