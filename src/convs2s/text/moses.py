"""Tokenization and detokenization as Moses of May 2017 did them, by sacremoses.

sacremoses 0.2.0 equals ``tokenizer.perl`` and ``detokenizer.perl`` of mosesdecoder b8de7c352 on
real text in English, German, French and Romanian; docs/preparation.md says where it does not.

It is loaded in 0.09 s of a core, where by itself it takes 0.34 s: at its import it compiles all its
expressions, some of which list each letter of Unicode, and loads joblib for work on several
processes, for which it is never asked here.
"""

import builtins
import re
import sys
import unicodedata
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import zip_longest
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar


class LazyExpression:
    """An expression that is compiled when it is first used."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        """Take what ``re.compile`` takes."""
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Return the compiled expression's own attribute, and keep it."""
        if name.startswith("_"):
            raise AttributeError(name)
        attribute = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, attribute)
        return attribute


_STAND_INS = {
    "re": SimpleNamespace(**vars(re) | {"compile": LazyExpression}),
    "joblib": SimpleNamespace(Parallel=None, delayed=None),
}
"""What sacremoses sees in place of the process's own modules."""


def _import(name: str, *rest: Any) -> Any:
    """Import a module for sacremoses."""
    return _STAND_INS.get(name) or builtins.__import__(name, *rest)


class _LightLoader(SourceFileLoader):
    """Finds and loads sacremoses' modules, with an ``import`` of their own; changes no other."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.startswith("sacremoses") else None
        if spec:
            spec.loader = cls(name, str(spec.origin))
        return spec

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": _import}
        super().exec_module(module)


sys.meta_path.insert(0, _LightLoader)
from sacremoses import MosesDetokenizer, MosesTokenizer  # noqa: E402

sys.meta_path.remove(_LightLoader)

# Perl's white space does not include U+001C to U+001F, Python's does: delete what Perl deletes
# before sacremoses can split a word there.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")
_LOWER = frozenset(MosesTokenizer.IsLower)
_ALPHA = frozenset(MosesTokenizer.IsAlpha)
_DIGITS = frozenset("0123456789")
_EMPTY = "\ufdd0"
"""Stands for an empty word: a code point that Unicode keeps for a program's own use."""


class Guarded:
    """A pattern that is only tried on text which holds what each of its matches holds.

    Python finds a fixed text much faster than a pattern that begins with anything else.
    """

    def __init__(self, pattern: Any, needle: str) -> None:
        """Take a pattern, and a text without which a substitution changes nothing."""
        self._pattern = pattern
        self._needle = needle

    def sub(self, replacement: str, text: str) -> str:
        """Return the text with every match replaced, as the pattern's own ``sub``."""
        if self._needle not in text:
            return text
        replaced: str = self._pattern.sub(replacement, text)
        return replaced


def _guarded(rule: tuple[Any, str], needle: str) -> tuple[Any, str]:
    return Guarded(rule[0], needle), rule[1]


class Tokenizer(MosesTokenizer):  # type: ignore[misc]
    """``tokenizer.perl -q -l LANGUAGE``, with ``-a`` and without ``-no-escape`` by default.

    It has the output of the library's tokenizer in half the time.
    """

    # A run of blanks becomes one space, and the ends go: the library strips them next, both times.
    DEDUPLICATE_SPACE = (SimpleNamespace(sub=lambda space, text: space.join(text.split())), " ")
    COMMA_SEPARATE_1 = _guarded(MosesTokenizer.COMMA_SEPARATE_1, ",")
    COMMA_SEPARATE_2 = _guarded(MosesTokenizer.COMMA_SEPARATE_2, ",")
    COMMA_SEPARATE_3 = _guarded(MosesTokenizer.COMMA_SEPARATE_3, ",")
    AGGRESSIVE_HYPHEN_SPLIT = _guarded(MosesTokenizer.AGGRESSIVE_HYPHEN_SPLIT, "-")
    MULTIDOT_RUN = Guarded(MosesTokenizer.MULTIDOT_RUN, "..")
    MULTIDOT_MARKER = Guarded(MosesTokenizer.MULTIDOT_MARKER, "MULTI")
    ENGLISH_SPECIFIC_APOSTROPHE: ClassVar = [
        _guarded(rule, "'") for rule in MosesTokenizer.ENGLISH_SPECIFIC_APOSTROPHE
    ]
    FR_IT_SPECIFIC_APOSTROPHE: ClassVar = [
        _guarded(rule, "'") for rule in MosesTokenizer.FR_IT_SPECIFIC_APOSTROPHE
    ]

    def __init__(self, language: str, *, aggressive: bool = True, escape: bool = True) -> None:
        """Load the abbreviations of a language, those of English where it has none, as in Moses.

        ``aggressive`` splits hyphenated words, ``low-cost`` to ``low @-@ cost``; ``escape`` writes
        ``& | < > ' " [ ]`` as XML entities.
        """
        super().__init__(language)
        self._aggressive = aggressive
        self._escape = escape
        # Looked up for each word that ends in a full stop.
        self._numeric_only = frozenset(self.NUMERIC_ONLY_PREFIXES)
        self._nonbreaking = frozenset(self.NONBREAKING_PREFIXES) - self._numeric_only

    def __call__(self, line: str) -> str:
        """Return the line's words, joined by single spaces."""
        words: str = self.tokenize(
            _CONTROLS.sub("", line),
            aggressive_dash_splits=self._aggressive,
            escape=self._escape,
            return_str=True,
        )
        return words

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        """Separate the full stop of each word that is no abbreviation."""
        words = text.split()
        separated = []
        for word, following in zip_longest(words, words[1:], fillvalue=""):
            if word[-1] == "." and len(word) > 1:
                prefix = word[:-1]
                has_inner_stop = "." in prefix and not _ALPHA.isdisjoint(prefix)
                is_followed_by_small = following[:1] in _LOWER
                if not (
                    has_inner_stop
                    or is_followed_by_small
                    or self.is_abbreviation(prefix, following)
                ):
                    word = f"{prefix} ."
            separated.append(word)
        return " ".join(separated)

    def is_abbreviation(self, prefix: str, following: str) -> bool:
        """Return whether the language's list has a word, without its full stop, before another."""
        if prefix in self._numeric_only:
            return following[:1] in _DIGITS
        return prefix in self._nonbreaking


def _joins_the_next(word: str) -> bool:
    """Say whether the next word is joined to a word, such as ``$`` and ``(``.

    The library's list of symbols of currencies is that of Unicode 7.
    """
    return all(sign in "([{¿¡" or unicodedata.category(sign) == "Sc" for sign in word)


class Detokenizer(MosesDetokenizer):  # type: ignore[misc]
    """``detokenizer.perl -q -l LANGUAGE``: it also takes XML entities and ``@-@`` back.

    It is made with the two-letter code of a language.
    """

    IS_CURRENCY_SYMBOL = SimpleNamespace(search=_joins_the_next)

    def __call__(self, words: str) -> str:
        """Return the text of words that are joined by spaces."""
        has_empty = "  " in words
        if has_empty:
            # Moses takes the hyphens back first; then between two spaces it sees an empty word.
            separated = f" {words} ".replace(" @-@ ", "-").strip(" ").split(" ")
            words = " ".join(word or _EMPTY for word in separated)
        text: str = self.detokenize([words])
        if has_empty:
            text = text.replace(_EMPTY, "")
            text = re.sub(" +", " ", text).strip(" ")
        return text
