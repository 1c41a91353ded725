"""Step 3, negative example generation (section 3.3): methods over one context, each registered under its name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
