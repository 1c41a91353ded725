"""From numbers to what people look at: tables, plots, pages.

>>> import loginfer
>>> loginfer.report("runs", "benchmarks", out="site")  # doctest: +SKIP
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
