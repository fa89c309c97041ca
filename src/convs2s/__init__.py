"""Convolutional Sequence to Sequence Learning (Gehring et al. 2017), in small functions."""

from importlib import import_module

__version__ = "0.1.0"

_API = {
    "Translator": "convs2s.api.translator",
    "Translation": "convs2s.decoding.translate",
    "AttentionMap": "convs2s.decoding.inspection",
    "PairScore": "convs2s.decoding.rescoring",
    "UserError": "convs2s.errors",
}
"""Public name -> the module that defines it, which is imported when the name is first used."""


def __getattr__(name: str) -> object:
    """Import a public name from its module (PEP 562)."""
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_API[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_API])
