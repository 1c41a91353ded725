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

import lazy_loader

from loginfer._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
