"""AnyBURL: lines of names, and the configurations with which it learns, applies and evaluates rules.

AnyBURL quotes nothing when it writes rules: a name has no white space, commas or brackets, and a constant has
at least two characters, since single capitals are variables. `me_myself_i` is its own word for a loop.

Of an inductive benchmark the rules are applied to the context graph.
"""

from __future__ import annotations

import re

from loginfer.benchmark.export import base
from loginfer.benchmark.folder.manifest import Role, file_of

LEARN, APPLY, EVALUATE = (f"config-{what}.properties" for what in ("learn", "apply", "eval"))
# How long AnyBURL learns, in seconds; it appends the number to what it writes.
SNAPSHOTS = (10, 50, 100)
THREADS = 4

_ENTITY = re.compile(r"[\s(),]|\A.\Z|\Ame_myself_i\Z")
_RELATION = re.compile(r"[\s(),]")


def write(job: base.Job) -> base.Written:
    """Write lines of names and configurations."""
    texts = base.safe_texts(job.benchmark.graph, _ENTITY, _RELATION)
    base.write_named_sets(job, texts)
    for name, settings in _configurations(job).items():
        base.write_text(job.folder / name, "".join(f"{key} = {value}\n" for key, value in settings.items()))
    files = [
        (LEARN, "how AnyBURL learns rules from train"),
        (APPLY, "how it applies them to test"),
        (EVALUATE, "how it evaluates the rankings"),
    ]
    usage = base.usage("anyburl", learn=LEARN, apply=APPLY, evaluate=EVALUATE, last=SNAPSHOTS[-1])
    return base.Written(files, usage, texts.about, texts.notes)


def _configurations(job: base.Job) -> dict[str, dict[str, object]]:
    train = file_of(Role("train"))
    facts = train if job.benchmark.context is None else file_of(Role("test", context=True))
    last = SNAPSHOTS[-1]
    test = {"PATH_TRAINING": facts, "PATH_TEST": file_of(Role("test")), "PATH_VALID": file_of(Role("valid"))}
    return {
        LEARN: {
            "PATH_TRAINING": train,
            "PATH_OUTPUT": "rules",
            "SNAPSHOTS_AT": ",".join(map(str, SNAPSHOTS)),
            "WORKER_THREADS": THREADS,
        },
        APPLY: {
            **test,
            "PATH_RULES": f"rules-{last}",
            "PATH_OUTPUT": f"predictions-{last}",
            "UNSEEN_NEGATIVE_EXAMPLES": 5,
            "TOP_K_OUTPUT": 100,
            "WORKER_THREADS": THREADS,
        },
        EVALUATE: {**test, "PATH_PREDICTIONS": f"predictions-{last}"},
    }


FORMAT = base.ExportFormat("anyburl", write, lambda folder, about: base.read_named_lines(about))
