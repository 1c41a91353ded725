"""LogInfer: inferential benchmarks for knowledge-graph completion.

Everything a script needs is importable from here; nothing heavy is loaded before it is used.

>>> import loginfer
>>> graph = loginfer.KnowledgeGraph.from_names([("ann", "knows", "bob"), ("bob", "knows", "cem")])
>>> rule = loginfer.parse_rule("(x,knows,y), (y,knows,z) -> (x,knows,z)")
>>> engine = loginfer.open_engine(graph)
>>> engine.support(rule)
1
>>> graph.names(engine.conclusions(rule))
[('ann', 'knows', 'cem')]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from loginfer._version import __version__

if TYPE_CHECKING:
    from loginfer.benchmark import (
        Benchmark,
        Recipe,
        audit,
        build,
        export_benchmark,
        load_benchmark,
        read_export,
        read_recipe,
        write_benchmark,
        write_recipe,
    )
    from loginfer.engine import Engine, extend, open_engine
    from loginfer.errors import LogInferError
    from loginfer.evaluation import Evaluation, Evaluator, Run, evaluate, load_run
    from loginfer.kg import KnowledgeGraph, Vocabulary, generate_lubm, load_graph
    from loginfer.kg.load import write_graph
    from loginfer.logic import (
        Atom,
        Inequality,
        Pattern,
        Rule,
        canonical,
        entails,
        equivalent,
        parse_pattern,
        parse_rule,
        subrules,
    )
    from loginfer.logic.rulefile import read_rules, write_rules

__all__ = [
    "Atom",
    "Benchmark",
    "Engine",
    "Evaluation",
    "Evaluator",
    "Inequality",
    "KnowledgeGraph",
    "LogInferError",
    "Pattern",
    "Recipe",
    "Rule",
    "Run",
    "Vocabulary",
    "__version__",
    "audit",
    "build",
    "canonical",
    "entails",
    "equivalent",
    "evaluate",
    "export_benchmark",
    "extend",
    "generate_lubm",
    "load_benchmark",
    "load_graph",
    "load_run",
    "open_engine",
    "parse_pattern",
    "parse_rule",
    "read_export",
    "read_recipe",
    "read_rules",
    "subrules",
    "write_benchmark",
    "write_graph",
    "write_recipe",
    "write_rules",
]

_HOMES = {
    **dict.fromkeys(
        (
            "Benchmark",
            "Recipe",
            "audit",
            "build",
            "export_benchmark",
            "load_benchmark",
            "read_export",
            "read_recipe",
            "write_benchmark",
            "write_recipe",
        ),
        "loginfer.benchmark",
    ),
    **dict.fromkeys(("Evaluation", "Evaluator", "Run", "evaluate", "load_run"), "loginfer.evaluation"),
    "Engine": "loginfer.engine",
    "LogInferError": "loginfer.errors",
    "extend": "loginfer.engine",
    "generate_lubm": "loginfer.kg",
    "KnowledgeGraph": "loginfer.kg",
    "load_graph": "loginfer.kg",
    "open_engine": "loginfer.engine",
    "read_rules": "loginfer.logic.rulefile",
    "Vocabulary": "loginfer.kg",
    "write_graph": "loginfer.kg.load",
    "write_rules": "loginfer.logic.rulefile",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "loginfer.logic")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
