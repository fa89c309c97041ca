"""Named preparations: how raw text becomes the words that a model reads, and words text again.

A task names one preparation for training text and one for test text (docs/preparation.md); a model
carries the names, so that it can be given raw text.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from convs2s.config.corpus import PREPARATIONS
from convs2s.config.extensions import check_added, failures_of_code
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.text.corpus_filter import remove_bars
from convs2s.text.moses import Detokenizer, Tokenizer
from convs2s.text.normalize import (
    Normalizer,
    normalize_romanian,
    remove_non_printing,
    remove_romanian_diacritics,
)

Step = Callable[[str], str]


def _steps(name: str, language: str) -> tuple[Step, ...]:
    match name:
        case "moses_train":  # the released scripts: fairseq's prepare-wmt14en2{de,fr}.sh
            return Normalizer(language), remove_non_printing, Tokenizer(language)
        case "moses_test":  # their newstest text: of the punctuation the apostrophe alone changes
            return straighten_apostrophes, Tokenizer(language)
        case "stanford":  # text that Luong et al. (2015) tokenized with another mark of hyphens
            return mark_hyphens_as_moses, remove_bars, join_words
        case "wmt16":  # Sennrich et al. (2016b), wmt16-scripts' preprocess.sh, with every diacritic
            romanian = (normalize_romanian,) if language == "ro" else ()
            return Normalizer(language), *romanian, Tokenizer(language)
        case "wmt16_plain":  # the same to the letter: from Romanian, whose diacritics it removes
            *steps, tokenize = _steps("wmt16", language)
            plain = (remove_romanian_diacritics,) if language == "ro" else ()
            return *steps, *plain, tokenize
        case "lowercase":  # fairseq's prepare-iwslt14.sh: hyphens stay, all letters are lowered
            return Tokenizer(language, aggressive=False), str.lower
        case "lowercase_test":
            return straighten_apostrophes, *_steps("lowercase", language)
        case _:  # none: text that comes tokenized (Gigaword, DUC), with its # and <unk>
            return (join_words,)


def join_words(line: str) -> str:
    """Join the words of a line by single spaces, at any blank by which later steps split it."""
    return " ".join(line.split())


def mark_hyphens_as_moses(line: str) -> str:
    """Replace ``##AT##-##AT##`` by ``@-@``, which stands for a hyphen in test sets."""
    return line.replace("##AT##-##AT##", "@-@")


def straighten_apostrophes(line: str) -> str:
    """Replace U+2019 by the ASCII apostrophe, as the released scripts do to test sets."""
    return line.replace("\u2019", "'")


def _one_line(name: str, step: Step, line: str) -> str:
    """Return what an extension's step makes of a line; a UserError says that it is no line."""
    with failures_of_code(f"preparation {name}"):
        text = step(line)
    if not isinstance(text, str) or "\n" in text:
        raise UserError(f"preparation {name}: expected a line of text, not {text!r} of {line!r}")
    return text


class Preparation:
    """A named preparation for one language. Cheap to construct, and it can be pickled."""

    def __init__(self, name: str, language: str) -> None:
        """Build the steps for one of ``PREPARATIONS``, or an extension's, and a task's language.

        What stands before an underscore is what the text is tokenized as: en_title is English.
        """
        self._steps: tuple[Step, ...]
        self._detokenize: Step
        code = language.partition("_")[0]
        if extension := check_added("preparation", "PREPARATIONS", name, PREPARATIONS):
            with failures_of_code(f"preparation {name}"):
                made = extension(code)
                self._steps = (partial(_one_line, f"{name}.prepare", made.prepare),)
                self._detokenize = partial(_one_line, f"{name}.restore", made.restore)
            return
        self._steps = _steps(name, code)
        self._detokenize = join_words if name == "none" else Detokenizer(code)

    def prepare(self, line: str) -> str:
        """Return the words of a raw line, joined by single spaces."""
        for step in self._steps:
            line = step(line)
        return line

    def restore(self, words: str) -> str:
        """Return the text of words: detokenized, without XML entities; of ``none``, as is."""
        return self._detokenize(words)


def tokenize_file(*, raw: str | Path, output: str | Path, name: str, language: str) -> int:
    """Prepare a file line by line; return the number of lines."""
    return write_lines(output, map(Preparation(name, language).prepare, read_lines(raw)))
