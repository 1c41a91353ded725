"""Rules and patterns: the rule language of the paper, without any data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
