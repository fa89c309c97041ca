"""Named preparations: how raw text becomes the words that a model reads, and words text again.

A task names one preparation for training text and one for test text (docs/preparation.md); a model
carries the names, so that it can be given raw text.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.text.corpus_filter import remove_bars
from convs2s.text.normalize import (
    Normalizer,
    normalize_romanian,
    remove_non_printing,
    remove_romanian_diacritics,
)
from convs2s.text.tokenize import Detokenizer, Tokenizer

Step = Callable[[str], str]


def _moses_train(language: str) -> tuple[Step, ...]:
    """Training text of the released scripts: fairseq's prepare-wmt14en2{de,fr}.sh."""
    return Normalizer(language), remove_non_printing, Tokenizer(language)


def _moses_test(language: str) -> tuple[Step, ...]:
    """Newstest text of the same scripts: no normalization but for the typographic apostrophe."""
    return straighten_apostrophes, Tokenizer(language)


def _wmt16(language: str) -> tuple[Step, ...]:
    """All text of Sennrich et al. (2016b): wmt16-scripts' preprocess.sh, with every diacritic."""
    romanian = (normalize_romanian,) if language == "ro" else ()
    return Normalizer(language), *romanian, Tokenizer(language)


def _wmt16_plain(language: str) -> tuple[Step, ...]:
    """The same script to the letter: it translates from Romanian, and into no diacritics."""
    *steps, tokenize = _wmt16(language)
    romanian = (remove_romanian_diacritics,) if language == "ro" else ()
    return *steps, *romanian, tokenize


def _stanford(language: str) -> tuple[Step, ...]:
    """Training text that Luong et al. (2015) tokenized: only its mark of hyphens is another."""
    return mark_hyphens_as_moses, remove_bars


def _lowercase(language: str) -> tuple[Step, ...]:
    """Training text of fairseq's prepare-iwslt14.sh: hyphens are left, all letters lowered."""
    return Tokenizer(language, aggressive=False), str.lower


def _lowercase_test(language: str) -> tuple[Step, ...]:
    """Test text of the same script."""
    return straighten_apostrophes, *_lowercase(language)


def _none(language: str) -> tuple[Step, ...]:
    """Text that comes tokenized (Gigaword, DUC): its words as they are, ``#`` and ``<unk>`` too."""
    return (join_words,)


def join_words(line: str) -> str:
    """Join the words of a line by single spaces; they are what blanks separate, any of Unicode's.

    They are the blanks of Python's ``split``, by which all later steps find the words again.
    """
    return " ".join(line.split())


def mark_hyphens_as_moses(line: str) -> str:
    """Replace ``##AT##-##AT##`` by ``@-@``, which stands for a hyphen in test sets."""
    return line.replace("##AT##-##AT##", "@-@")


def straighten_apostrophes(line: str) -> str:
    """Replace U+2019 by the ASCII apostrophe, as the released scripts do to test sets."""
    return line.replace("\u2019", "'")


#: The steps of each preparation, in order, given a language.
PREPARATIONS: dict[str, Callable[[str], tuple[Step, ...]]] = {
    "moses_train": _moses_train,
    "moses_test": _moses_test,
    "stanford": _stanford,
    "wmt16": _wmt16,
    "wmt16_plain": _wmt16_plain,
    "lowercase": _lowercase,
    "lowercase_test": _lowercase_test,
    "none": _none,
}


class Preparation:
    """A named preparation for one language. Cheap to construct, and it can be pickled."""

    def __init__(self, name: str, language: str) -> None:
        """Build the steps.

        Args:
            name: a key of :data:`PREPARATIONS`.
            language: a task's language; what it is tokenized as stands before an underscore:
                en_title is English.

        Raises:
            UserError: no preparation has this name.
        """
        if name not in PREPARATIONS:
            near = get_close_matches(name, PREPARATIONS, n=1)
            hint = f"did you mean '{near[0]}'? " if near else ""
            raise UserError(
                f"preparation '{name}' is unknown: {hint}choose one of {', '.join(PREPARATIONS)}"
            )
        self.name = name
        self.language = language
        code = language.partition("_")[0]
        self._steps = PREPARATIONS[name](code)
        self._detokenize: Step = join_words if name == "none" else Detokenizer(code)

    def prepare(self, line: str) -> str:
        """Return the words of a raw line, joined by single spaces."""
        for step in self._steps:
            line = step(line)
        return line

    def restore(self, words: str) -> str:
        """Return the text of words: detokenized, without XML entities; of ``none``, as is."""
        return self._detokenize(words)


def tokenize_file(*, raw: str | Path, output: str | Path, name: str, language: str) -> int:
    """Prepare a file line by line; return the number of lines.

    Raises:
        UserError: the file is missing or not UTF-8, or no preparation has this name.
    """
    preparation = Preparation(name, language)
    return write_lines(output, map(preparation.prepare, read_lines(raw)))


def target_preparation(task: str, languages: Mapping[str, str], preparation: str) -> Preparation:
    """Return the preparation of a task's target side, from what a model file says of the task."""
    return Preparation(preparation, languages["target"])
