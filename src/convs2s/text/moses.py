"""sacremoses, loaded in a fraction of the time that it takes by itself.

At its import it compiles all its expressions, some of which list each letter of Unicode, and loads
joblib for work on several processes, for which it is never asked here.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class LazyExpression:
    """An expression that is compiled when it is first used."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        """Take what ``re.compile`` takes."""
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Return the compiled expression's own attribute, and keep it."""
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found


@contextmanager
def _lightly() -> Iterator[None]:
    """Have sacremoses compile nothing while it is imported, and find an empty joblib."""
    compile_now = re.compile
    empty = ModuleType("joblib")
    empty.__dict__.update(Parallel=None, delayed=None)

    def compile_later(pattern: Any, flags: Any = 0) -> Any:
        asks = sys._getframe(1).f_globals["__name__"]
        own = asks.startswith("sacremoses.")
        return LazyExpression(pattern, flags) if own else compile_now(pattern, flags)

    re.compile = compile_later
    found = sys.modules.setdefault("joblib", empty)
    try:
        yield
    finally:
        re.compile = compile_now
        if found is empty:
            del sys.modules["joblib"]


with _lightly():
    from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

__all__ = ["MosesDetokenizer", "MosesPunctNormalizer", "MosesTokenizer"]
