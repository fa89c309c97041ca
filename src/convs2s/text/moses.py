"""Tokenize as Moses of May 2017 did, with the library sacremoses.

sacremoses 0.2.0 differs from ``tokenizer.perl`` of mosesdecoder b8de7c352 in the apostrophes of
Irish, the characters of Cantonese and a few abbreviations, which `Tokenizer` corrects.
docs/preparation.md describes the text on which a difference stays.

This module imports sacremoses in a special way, which takes 0.09 s instead of 0.34 s. A normal
import compiles all of its regular expressions, some of which list every letter of Unicode, and
loads joblib, which sacremoses needs only for work in several processes. Here an expression is
compiled when it is first used, and joblib is not loaded.
"""

import builtins
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import zip_longest
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar


class LazyExpression:
    """Behaves like a compiled regular expression, but is compiled when it is first used."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        """Take the arguments of ``re.compile``."""
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled expression, such as ``sub``, and store it here.

        Python calls this only for attributes that are not stored yet.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        attribute = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, attribute)
        return attribute


_STAND_INS = {
    # The module, but `re.compile` does not compile yet.
    "re": SimpleNamespace(**vars(re) | {"compile": LazyExpression}),
    "joblib": SimpleNamespace(Parallel=None, delayed=None),
}
"""Name of a module -> the object that sacremoses gets when it imports this module."""


def _import(name: str, *rest: Any) -> Any:
    """Return a stand-in for a module, or import the module; called by imports in sacremoses."""
    return _STAND_INS.get(name) or builtins.__import__(name, *rest)


class _LightLoader(SourceFileLoader):
    """Finds and loads the modules of sacremoses, in which ``import`` calls ``_import``.

    All other modules are left to Python's own finders.
    """

    @classmethod
    def find_spec(
        cls,
        name: str,
        path: Any = None,
        target: Any = None,
    ) -> ModuleSpec | None:
        """Return where a module of sacremoses is, with this loader; None for other modules."""
        if not name.startswith("sacremoses"):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec:
            spec.loader = cls(name, str(spec.origin))
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run a module of sacremoses, in which ``import`` calls ``_import``."""
        # An import statement calls the function ``__import__`` of its module's builtins.
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": _import}
        super().exec_module(module)


# Python asks this loader first, but only while sacremoses is imported.
sys.meta_path.insert(0, _LightLoader)
from sacremoses import MosesTokenizer  # noqa: E402

sys.meta_path.remove(_LightLoader)

# tokenizer.perl deletes these control characters. They are deleted before sacremoses sees the line,
# because for Python U+001C to U+001F are white space, and sacremoses would split a word there.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")
_LOWER = frozenset(MosesTokenizer.IsLower)
_ALPHA = frozenset(MosesTokenizer.IsAlpha)
_DIGITS = frozenset("0123456789")

# Language -> words that are abbreviations for sacremoses, but not for the script of May 2017. The
# script's list does not have them yet, or has them with a blank after them, so that no word of a
# text equals them.
_NO_ABBREVIATIONS = {
    "as": "ভি",
    "bn": "ভি",
    "en": "Rs",
    "es": "Fil gr",
    "it": "Amn Arch all es",
    "ml": "പി",
    "mni": "ভি",
    "nl": "Nrs",
    "sk": "Pf",
    "sv": """Å Ä Ö adv d f fil jur kand lic mag mha prop s vol jan feb mar apr jun jul aug sep okt
        nov dec""",
}


class Guarded:
    """A pattern that is only searched for in text that contains a fixed text, the needle.

    Python finds a fixed text much faster than a pattern.
    """

    def __init__(self, pattern: Any, needle: str) -> None:
        """Take a pattern and its needle: in text without it, a substitution changes nothing."""
        self._pattern = pattern
        self._needle = needle

    def sub(self, replacement: str, text: str) -> str:
        """Return the text with every match replaced, as the ``sub`` of the pattern does."""
        if self._needle not in text:
            return text
        replaced: str = self._pattern.sub(replacement, text)
        return replaced


def _guarded(rule: tuple[Any, str], needle: str) -> tuple[Any, str]:
    """Return a rule of sacremoses, (pattern, replacement), with its pattern guarded."""
    pattern, replacement = rule
    return Guarded(pattern, needle), replacement


class Tokenizer(MosesTokenizer):  # type: ignore[misc]
    """Tokenizes as ``tokenizer.perl -q -l LANGUAGE`` does, with ``-a`` by default.

    The class constants and ``handles_nonbreaking_prefixes`` override those of sacremoses. The
    output is the same, in half the time.
    """

    # Replaces each run of blanks by a space. Unlike the rule of sacremoses, it also removes blanks
    # at both ends. The tokens are the same, because sacremoses strips the text anyway after it has
    # applied the rule.
    DEDUPLICATE_SPACE = (
        SimpleNamespace(sub=lambda space, text: space.join(text.split())),
        " ",
    )
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

    def __init__(self, language: str, *, aggressive: bool = True) -> None:
        """Load the abbreviations of a language.

        Args:
            language: A code of two letters. As in Moses, a language without a list of abbreviations
                gets the list of English.
            aggressive: Whether to split hyphenated words, ``low-cost`` into ``low @-@ cost`` (the
                option ``-a`` of the script).
        """
        # For sacremoses, Chinese characters are letters only if the language is Chinese. The lists
        # of abbreviations of Chinese and Cantonese are equal.
        super().__init__("zh" if language == "yue" else language)
        if language == "ga":
            # In the script, but not in sacremoses, Irish has the apostrophes of French.
            self.lang = "fr"
        self._aggressive = aggressive
        # Abbreviation -> whether it is one before a number only. As in the script, the last entry
        # of a word counts.
        self._needs_number: dict[str, bool] = {}
        for entry in self.NONBREAKING_PREFIXES:
            word, marker, _ = entry.partition(" #NUMERIC_ONLY#")
            self._needs_number[word] = bool(marker)
        for word in _NO_ABBREVIATIONS.get(language, "").split():
            del self._needs_number[word]

    def __call__(self, line: str) -> str:
        """Return the line's words, joined by single spaces.

        The characters ``& | < > ' " [ ]`` are written as XML entities.
        """
        words: str = self.tokenize(
            _CONTROLS.sub("", line),
            aggressive_dash_splits=self._aggressive,
            escape=True,
            return_str=True,
        )
        return words

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        """Separate the final full stop from each word that is not an abbreviation.

        The full stop stays if the word contains another full stop and a letter, or if the next word
        begins with a small letter, or if the word is a known abbreviation.
        """
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
        """Return whether a word is an abbreviation according to the language's list.

        ``prefix`` is the word without its full stop. ``following`` is the next word, as some
        abbreviations, such as ``No.``, are listed as abbreviations before a number only.
        """
        if self._needs_number.get(prefix):
            return following[:1] in _DIGITS
        return prefix in self._needs_number
