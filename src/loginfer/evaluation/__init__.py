"""From scores to numbers: thresholds, classification, ranking, diagnosis; runs that can be resumed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
