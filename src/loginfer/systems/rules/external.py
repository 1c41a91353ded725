"""Rules that something else has mined: a rule file in any dialect, or a run of an AnyBURL jar.

The jar runs in a folder of its own, without a shell, and not for ever. It gets ids instead of names (`e012`, `r3`):
AnyBURL quotes nothing, takes single capitals for variables and cannot carry a name with a space. They are filled up
with zeros, so that their order is that of the ids and the same numbers come back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError
from loginfer.files import describe_os_error, file_sum, reading
from loginfer.kg import RDF_TYPE, KnowledgeGraph, Vocabulary
from loginfer.logic.canonical import map_atoms
from loginfer.logic.dialects import dialect_named
from loginfer.logic.dialects.anyburl import ANYBURL
from loginfer.logic.rule import Atom, Constant, Rule, ScoredRule, Term
from loginfer.logic.rule_files import SHIPPED, dialect_of, read_rules
from loginfer.processes import end_with_thread
from loginfer.settings import setting
from loginfer.systems.interface import Arrays, Checkpoint, Watch
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, MinedRules, Miner, Mining, RuleTable, applied
from loginfer.systems.rules.texts import Skipped, mined_from, read_path_rules

if TYPE_CHECKING:
    from loginfer.systems.contrast.model import ContrastScorer
    from loginfer.systems.rules.scorer import RuleScorer


@dataclass(frozen=True, kw_only=True)
class External(Miner):
    """Applies rules that something else has mined.

    Rules over relations or constants that the graph does not have, and paths through a type, are left out
    and counted. Rules of AnyBURL are worth correct / (predictions + 5), with AnyBURL's weights for rules
    that say little; others what their file says, or 1 where it says nothing. Rules with weights, as
    `contrast` writes them, are applied as `contrast` does.
    """

    rules: str | None = setting(None, "a rule file: AnyBURL, PyClause, AMIE, RuDaS, Datalog, arrow, …")
    dialect: str | None = setting(None, "of the rule file; detected by default")
    on_error: Literal["fail", "skip"] = setting("fail", "lines that are no rule: stop, or leave them out")
    confidence: Literal["standard", "pca"] = setting("standard", "which of AMIE's confidences counts")
    distinct: Literal["auto", "yes", "no"] = setting(
        "auto", "whether variables stand for different entities; auto: in AnyBURL's rules"
    )
    aggregation: Literal["maximum", "noisy-or"] = setting(
        "maximum", "of the rules that predict a triple: the best, or 1 − Π (1 − confidence) of the five best"
    )
    jar: str | None = setting(None, "instead of a file: an AnyBURL jar, which is run")
    seconds: int = setting(100, "how long the jar mines", least=1)
    threads: int = setting(1, "threads of the jar", least=1, most=1024)
    java: str = setting("java", "the program that runs the jar")
    main_class: str = setting("de.unima.ki.anyburl.Learn", "the class of the jar that learns")
    grace: float = setting(60.0, "seconds more that the jar may take for reading and writing", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> ExternalMining:
        """Begin to read, or to run the jar on P_train.

        Raises
        ------
        InputError
            If neither or both are given, or the file or jar cannot be used.
        """
        return ExternalMining(self, benchmark.graph)

    def mine(self, benchmark: Benchmark, watch: Watch | None = None) -> MinedRules:
        """Read the rules, or run the jar to its end; what is left out is logged."""
        mining = cast(ExternalMining, self._finished(benchmark, watch))
        for note in mining.notes:
            logging.getLogger("loginfer").warning("loginfer: %s", note)
        return mining.rules()

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer | ContrastScorer:  # type: ignore[override]
        """Return what scores triples with the rules over P_train."""
        if weighted(rules.others) and not len(rules.paths):
            from loginfer.systems.contrast.model import ContrastScorer

            return ContrastScorer.of_rules(benchmark.seen, rules.others)
        return super().scorer(benchmark, rules)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> RuleScorer | ContrastScorer:  # type: ignore[override]
        """Return the scorer whose `arrays()` these are."""
        if "intercepts" in arrays:
            from loginfer.systems.contrast.model import ContrastScorer

            return ContrastScorer.from_arrays(benchmark.seen, arrays)
        return super().restore(benchmark, arrays)


def weighted(rules: Sequence[ScoredRule]) -> bool:
    """Say whether rules have weights that are to be added up, as those of `contrast` have."""
    return bool(rules) and all("weight" in dict(rule.extra) for rule in rules)


# When rules are written besides at the end, in seconds.
SNAPSHOTS = (10, 50, 100, 500, 1000, 5000, 10_000)
# How many bytes of what a jar prints are kept for the error message.
KEPT_BYTES = 2000
KEPT_LINES = 8

TRAINING, CONFIGURATION, OUTPUT = "train.txt", "config-learn.properties", "rules"


def check_jar(path: str | Path) -> str:
    """Return the sha256 of a jar.

    Raises
    ------
    InputError
        If there is no such file, or it is no jar.
    """
    jar = Path(path)
    with reading(jar):
        if not jar.exists():
            raise InputError(f"no jar `{jar}`", hint="give the path of AnyBURL's jar, e.g. AnyBURL-23-1.jar")
        if not jar.is_file() or not zipfile.is_zipfile(jar):
            raise InputError(f"`{jar}` is no jar", hint="give the path of AnyBURL's jar, e.g. AnyBURL-23-1.jar")
    return file_sum(jar)


def numbered(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return a graph with the same ids and names like `e012` and `r3`."""

    def names(letter: str, size: int) -> Vocabulary:
        width = len(str(max(size - 1, 0)))
        return Vocabulary.of([f"{letter}{number:0{width}}" for number in range(size)])

    entities, relations = names("e", len(graph.entities)), names("r", len(graph.relations))
    kind = "" if graph.type_relation is None else relations[graph.type_relation]
    return KnowledgeGraph(entities, relations, graph.triples, type_predicate=kind)


# Seconds that a killed process may take to vanish.
PATIENCE_AT_THE_END = 5.0


class JarRun:
    """A jar that is running.

    Parameters
    ----------
    graph
        What to mine, with names that AnyBURL can carry.
    jar
        The jar.
    settings
        What runs it, and for how long.

    Raises
    ------
    InputError
        If there is no such jar or no such program.
    """

    def __init__(self, graph: KnowledgeGraph, jar: str, settings: External) -> None:
        self.sha256 = check_jar(jar)
        self.seconds = settings.seconds
        self._jar, self._limit = jar, settings.seconds + settings.grace
        program = shutil.which(settings.java)
        if program is None:
            hint = "install Java, or say where it is: --set java=…"
            raise InputError(f"no program `{settings.java}` to run the jar with", hint=hint)
        self._folder = folder = Path(tempfile.mkdtemp(prefix="loginfer-anyburl-"))
        # Whatever becomes of this object, the folder vanishes, and before it the process that writes there.
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        _write_triples(graph, folder / TRAINING)
        (folder / CONFIGURATION).write_text(_configuration(settings), encoding="ascii")
        command = [program, "-cp", str(Path(jar).resolve()), settings.main_class, CONFIGURATION]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a list of words, and no shell
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its children die with it
                preexec_fn=end_with_thread if os.name == "posix" else None,
            )
        except OSError as error:
            raise InputError(f"cannot run `{program}`: {describe_os_error(error)}") from error
        self._started = time.monotonic()
        self._kill = weakref.finalize(self, _kill, self._process)
        self._listener = _Listener(self._process)
        self._listener.start()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def wait(self, seconds: float) -> bool:
        """Wait a little; True if the jar is still running.

        Raises
        ------
        InputError
            If it has failed, has written nothing, or has come neither to its end in time nor to its rules.
        """
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            if self.elapsed <= self._limit:
                return True
            self.stop()
            if self._output(self.seconds) is None:
                raise self._failure(f"has not come to its end after {self.elapsed:.0f} s") from None
            return False
        except KeyboardInterrupt:
            self.stop()
            raise
        self.stop()
        if code:
            raise self._failure(f"has failed with exit code {code}")
        if self.written() is None:
            raise self._failure("has ended without writing any rules")
        return False

    def stop(self) -> None:
        """End the jar and all that it has started."""
        self._kill()
        self._listener.join(1)

    def written(self) -> Path | None:
        """Return the last file of rules that the jar has written; None if there is none."""
        outputs = [self._output(second) for second in (self.seconds, *reversed(SNAPSHOTS))]
        return next((path for path in outputs if path is not None), None)

    def _output(self, second: int) -> Path | None:
        path = self._folder / f"{OUTPUT}-{second}"
        return path if path.is_file() and path.stat().st_size else None

    def _failure(self, what: str) -> InputError:
        lines = self._listener.said.decode("utf-8", "replace").splitlines()[-KEPT_LINES:]
        output = "".join(f"\n    {''.join(c if c.isprintable() else ' ' for c in line)}" for line in lines)
        return InputError(
            f"the jar `{self._jar}` {what}; it " + (f"said last:{output}" if output else "said nothing"),
            hint="run it by hand to see more, or give another one",
        )


class _Listener(threading.Thread):
    """Keeps the last of what a process prints, so that it never waits for a reader.

    It does not hold on to the `JarRun`, which would otherwise live as long as its process.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self.said = b""
        self._process = process

    def run(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with contextlib.suppress(OSError, ValueError), stream:
            while part := os.read(stream.fileno(), 65536):
                self.said = (self.said + part)[-KEPT_BYTES:]


def _configuration(settings: External) -> str:
    snapshots = [second for second in SNAPSHOTS if second < settings.seconds] + [settings.seconds]
    values = {
        "PATH_TRAINING": TRAINING,
        "PATH_OUTPUT": OUTPUT,
        "SNAPSHOTS_AT": ",".join(map(str, snapshots)),
        "WORKER_THREADS": settings.threads,
    }
    return "".join(f"{key} = {value}\n" for key, value in values.items())


def _write_triples(graph: KnowledgeGraph, path: Path) -> None:
    entities, relations = list(graph.entities), list(graph.relations)
    with path.open("w", encoding="ascii", newline="\n") as stream:
        stream.writelines(f"{entities[s]}\t{relations[r]}\t{entities[o]}\n" for s, r, o in graph.triples.tolist())


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    # A Ctrl-C while it was being waited for may have left its lock taken: never wait without end.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE_AT_THE_END)


# A jar is asked how it is doing this often, in seconds.
PATIENCE = 0.25
THROUGH_TYPE = "a path through a type"


class ExternalMining(Mining):
    """A rule file that is being read, or a jar that is running.

    Parameters
    ----------
    settings
        What to read or run.
    graph
        P_train.

    Attributes
    ----------
    notes
        What to tell the user: how many rules were left out, and why.
    jar_sha256
        Of the jar that is run; None for a file.
    """

    def __init__(self, settings: External, graph: KnowledgeGraph) -> None:
        if (settings.rules is None) == (settings.jar is None):
            inputs = "both a rule file and a jar" if settings.rules else "neither a rule file nor a jar"
            raise InputError(f"External was given {inputs}", hint="give one: --set rules=FILE or --set jar=AnyBURL.jar")
        if settings.dialect is not None:
            dialect_named(settings.dialect)
        self._settings, self._graph = settings, graph
        self._rules = MinedRules(RuleTable.empty())
        self._done = False
        self._run: JarRun | None = None
        self._read: tuple[Path, int] | None = None
        self.notes: list[str] = []
        self.jar_sha256: str | None = None
        if settings.jar is not None:
            self._numbered = numbered(graph)
            self._run = JarRun(self._numbered, settings.jar, settings)
            self.jar_sha256 = self._run.sha256
            self.notes.append(f"{settings.jar} has the sha256 {self.jar_sha256}")

    def advance(self) -> bool:
        """Wait for the jar a little, or read the file; False if that is done."""
        if self._done:
            return False
        if self._run is not None:
            if self._run.wait(PATIENCE):
                return True
            path = self._run.written()
            if path is not None:
                self._read_written(path)
        elif self._settings.rules is not None:
            self._rules = self._read_file(self._settings.rules)
        self._done = True
        return False

    def rules(self) -> MinedRules:
        """Return the rules; of a jar that is still running those that it has written so far."""
        path = None if self._done or self._run is None else self._run.written()
        if path is not None:
            # Whoever shows how the mining goes on asks often, and a file is written once in a while.
            version = (path, path.stat().st_size)
            if version != self._read:
                self._read = version
                # Nothing that can be used yet is no error as long as the jar goes on.
                with contextlib.suppress(InputError):
                    self._read_written(path)
        return self._rules

    def progress(self) -> tuple[str, int, int | None]:
        """Return how long the jar has been running, or how many rules were read."""
        if self._run is not None:
            return "running the jar", min(int(self._run.elapsed), self._run.seconds), self._run.seconds
        return "reading rules", len(self._rules), None

    # -- reading -----------------------------------------------------------------------------------

    def _read_file(self, path: str) -> MinedRules:
        dialect = self._settings.dialect or _dialect_of(path)
        name = dialect_named(dialect).name
        distinct = name == ANYBURL.name if self._settings.distinct == "auto" else self._settings.distinct == "yes"
        if name == ANYBURL.name:
            mined, skipped = read_path_rules(path, self._graph, distinct=distinct)
            if skipped.malformed and self._settings.on_error == "fail":
                raise _malformed(skipped)
        else:
            file = read_rules(path, dialect, self._settings.on_error)
            if name == "amie" and self._settings.confidence == "pca":
                file = replace(file, rules=tuple(map(_with_pca, file.rules)))
            mined, skipped = mined_from(file, self._graph, distinct=distinct)
            if weighted(file.rules):
                # Their weights are added up, whatever their shapes.
                usable = tuple(scored for scored in file.rules if _is_known(scored.rule, self._graph))
                mined = MinedRules(RuleTable.empty(), usable, distinct=False)
        mined = self._usable(mined, skipped, path)
        return applied(mined) if name == ANYBURL.name else mined

    def _read_written(self, path: Path) -> None:
        """Read what the jar has written; what is said about an earlier file no longer counts."""
        del self.notes[1:]
        distinct = self._settings.distinct != "no"
        mined, skipped = read_path_rules(path, self._numbered, distinct=distinct)
        if skipped.malformed and not len(mined):
            raise InputError(f"the jar `{self._settings.jar}` has written something else than rules: "
                             f"{skipped.malformed[0].partition(': ')[2]}")  # fmt: skip
        others = tuple(replace(scored, rule=self._renamed(scored.rule)) for scored in mined.others)
        self._rules = applied(self._usable(replace(mined, others=others), skipped, str(self._settings.jar)))

    def _usable(self, mined: MinedRules, skipped: Skipped, source: str) -> MinedRules:
        """Leave out paths through types, and say what was left out."""
        good = _not_through_types(mined.paths, self._graph)
        if not good.all():
            skipped.counts[THROUGH_TYPE] = int(np.count_nonzero(~good))
            mined = replace(mined, paths=mined.paths.take(good))
        if not len(mined):
            if not len(skipped):
                raise InputError(f"`{source}` holds no rule")
            hint = "check that they were mined from this graph"
            raise InputError(f"none of the rules in `{source}` can be used: {_reasons(skipped)}", hint=hint)
        if len(skipped):
            self.notes.append(f"left out {len(skipped):,} of the rules in {source}: {_reasons(skipped)}")
        return mined

    def _renamed(self, rule: Rule) -> Rule:
        """Return a rule with the graph's own names for those that the jar was given."""

        def term(old: Term) -> Term:
            if not isinstance(old, Constant):
                return old
            return Constant(self._graph.entities[self._numbered.entity_id(old.name)])

        def atom(old: Atom) -> Atom:
            number = self._numbered.relation_id(str(old.relation))
            relation = RDF_TYPE if number == self._graph.type_relation else self._graph.relations[number]
            return Atom(term(old.subject), relation, term(old.object))

        return Rule(map_atoms(rule.body, atom), atom(rule.head))


def _is_known(rule: Rule, graph: KnowledgeGraph) -> bool:
    relations = all(name == RDF_TYPE or name in graph.relations for name in rule.relations)
    return relations and all(name in graph.entities for name in rule.constants)


def _dialect_of(path: str) -> str:
    if path in SHIPPED and not Path(path).exists():
        return "arrow"
    with reading(Path(path)):
        if Path(path).is_dir():
            raise InputError(f"`{path}` is a folder, not a rule file", hint="give the path of a file with rules")
    return dialect_of(Path(path))


def _with_pca(scored: ScoredRule) -> ScoredRule:
    measures = dict(scored.extra)
    if "pca_confidence" not in measures:
        return scored
    try:
        return replace(scored, confidence=float(measures["pca_confidence"]))
    except ValueError:
        raise InputError(
            f"the PCA confidence `{measures['pca_confidence']}` is no number",
            where=None if scored.line is None else f"line {scored.line}",
        ) from None


def _not_through_types(paths: RuleTable, graph: KnowledgeGraph) -> npt.NDArray[np.bool_]:
    """Say which rules use types as types: (x, type, C) at the end of a path or as the head."""
    if graph.type_relation is None:
        return np.ones(len(paths), dtype=np.bool_)
    typed = (paths.body != NONE) & (paths.body // 2 == graph.type_relation)
    last = np.arange(paths.body.shape[1]) == (paths.length - 1)[:, None]
    fine = last & (paths.end_constant != NONE)[:, None] & (paths.body % 2 == 0)
    wrong_head = (paths.head == graph.type_relation) & np.isin(paths.variables, (BOTH, OBJECT))
    return np.asarray(~(typed & ~fine).any(axis=1) & ~wrong_head)


def _malformed(skipped: Skipped) -> InputError:
    count = len(skipped.malformed)
    lines = "1 line is" if count == 1 else f"{count:,} lines are"
    return InputError(skipped.malformed[0], hint=f"{lines} no rule; --set on_error=skip leaves such lines out")


def _reasons(skipped: Skipped) -> str:
    """Say why rules were left out, most frequent reason first, with an example each."""
    counts = sorted(skipped.counts.items(), key=lambda item: -item[1])
    parts = []
    for reason, count in counts:
        example = f" (e.g. {skipped.examples[reason]})" if reason in skipped.examples else ""
        parts.append(f"{count:,} with {reason}{example}")
    if skipped.malformed:
        parts.append(f"{len(skipped.malformed):,} that cannot be read (e.g. {skipped.malformed[0]})")
    return "; ".join(parts)
