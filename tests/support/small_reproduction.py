"""A reproduction in miniature: the suite's names with a family of five, commands run in this process."""

import contextlib
import dataclasses
import io
import json

from loginfer.benchmark import write_benchmark
from loginfer.benchmark.construction.suite import SuiteResult
from loginfer.reproduction.running import failure
from tests.support.made_up_benchmarks import family


def tiny_suite(folder, entries, *, settings, jobs=1, force=False, report=None):
    """Build what `build_suite` would, but small; keep what is there."""
    made = []
    for entry in entries:
        path = folder / entry.name
        if path.exists():
            made.append(SuiteResult(entry.name, "kept", json.loads((path / "manifest.json").read_text())))
        else:
            benchmark = dataclasses.replace(family(methods=(entry.method,)), name=entry.name)
            made.append(SuiteResult(entry.name, "built", write_benchmark(benchmark, path)))
        if report:
            report(made[-1])
    return made


class InProcess:
    """Runs commands here, and remembers them; those that `broken` names fail."""

    def __init__(self, *broken):
        self.words = []
        self.broken = broken
        self.stopped = 0

    def __call__(self, words):
        from loginfer.cli import main

        self.words.append(list(words))
        for word in self.broken:
            if word in words:
                raise failure(f"noise\nerror: {word} is broken\n  hint: mend {word}\n", 2)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(list(words))
            except SystemExit as stop:
                if stop.code:
                    raise failure(err.getvalue(), int(stop.code)) from stop
        return out.getvalue()

    def stop(self):
        self.stopped += 1

    @property
    def evaluated(self):
        """System, benchmark and seed of each evaluation."""
        return [
            (w[w.index("--system") + 1], w[1].rsplit("/", 1)[1], int(w[w.index("--seed") + 1]))
            for w in self.words
            if w[0] == "evaluate"
        ]
