"""The three steps of section 3, the folder a benchmark lives in, its audit, and the suite."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
