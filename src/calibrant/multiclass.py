"""Several classes: measures and tests per class, one versus the rest, and of the top label."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
