"""Named preparations, which turn raw text into the words that a model reads, and words into text.

A task names one preparation for training text and one for test text (docs/preparation.md). A model
file contains the name, so that the model can translate raw text.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from convs2s.config.corpus import PREPARATIONS
from convs2s.config.extensions import check_added, failures_of_code
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.text.corpus_filter import remove_bars
from convs2s.text.detokenizer import Detokenizer
from convs2s.text.moses import Tokenizer
from convs2s.text.normalize import (
    Normalizer,
    normalize_romanian,
    remove_non_printing,
    remove_romanian_diacritics,
)

Step = Callable[[str], str]


def _steps(name: str, language: str) -> tuple[Step, ...]:
    """Return the functions that a preparation applies to a line, in this order."""
    match name:
        case "moses_train":
            # fairseq's prepare-wmt14en2{de,fr}.sh, for training text.
            return Normalizer(language), remove_non_printing, Tokenizer(language)
        case "moses_test":
            # The same scripts, for newstest. Here they change only apostrophes.
            return straighten_apostrophes, Tokenizer(language)
        case "stanford":
            # Text that Luong et al. (2015) tokenized, in which hyphens are marked differently.
            return mark_hyphens_as_moses, remove_bars, join_words
        case "wmt16":
            # Sennrich et al. (2016b), preprocess.sh of wmt16-scripts, but Romanian diacritics stay.
            romanian = (normalize_romanian,) if language == "ro" else ()
            return Normalizer(language), *romanian, Tokenizer(language)
        case "wmt16_plain":
            # Exactly as in Sennrich et al. (2016b): Romanian diacritics are removed.
            *steps, tokenize = _steps("wmt16", language)
            plain = (remove_romanian_diacritics,) if language == "ro" else ()
            return *steps, *plain, tokenize
        case "lowercase":
            # fairseq's prepare-iwslt14.sh: hyphenated words stay whole, letters become lowercase.
            return Tokenizer(language, aggressive=False), str.lower
        case "lowercase_test":
            return straighten_apostrophes, *_steps("lowercase", language)
        case _:
            # "none": text that is already tokenized (Gigaword, DUC), in which # and <unk> are kept.
            return (join_words,)


def join_words(line: str) -> str:
    """Join the words of a line by single spaces.

    Words are separated by whatever ``str.split`` takes for blanks, because later steps split lines
    in the same way.
    """
    return " ".join(line.split())


def mark_hyphens_as_moses(line: str) -> str:
    """Replace ``##AT##-##AT##`` by ``@-@``, which marks a hyphen in the test sets."""
    return line.replace("##AT##-##AT##", "@-@")


def straighten_apostrophes(line: str) -> str:
    """Replace U+2019 by the ASCII apostrophe, as fairseq's scripts do in test sets."""
    return line.replace("\u2019", "'")


def _one_line(
    name: str,
    step: Step,
    line: str,
) -> str:
    """Apply a step of an extension to a line, and check that the result is a line of text.

    Raises:
        UserError: the step failed, or returned something else. The message contains ``name``.
    """
    with failures_of_code(f"preparation {name}"):
        text = step(line)
    if not isinstance(text, str) or "\n" in text:
        raise UserError(
            f"preparation {name}: expected a line of text, not {text!r} of {line!r}"
        )
    return text


class Preparation:
    """A named preparation for one language.

    It is fast to construct and can be pickled, so that it can be passed to other processes.
    """

    def __init__(self, name: str, language: str) -> None:
        """Build the steps of a preparation for a language of a task.

        ``name`` is one of ``PREPARATIONS``, or the name of an extension's preparation. Only the
        part of ``language`` before an underscore counts: text in en_title is tokenized as English.
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
        """Return the text of a line of words: detokenized, and with XML entities replaced.

        The preparation ``none`` only joins the words by single spaces, and the preparation of an
        extension defines its own function.
        """
        return self._detokenize(words)


def tokenize_file(
    *,
    raw: str | Path,
    output: str | Path,
    name: str,
    language: str,
) -> int:
    """Prepare each line of a file, write the result, and return the number of lines."""
    return write_lines(
        output, map(Preparation(name, language).prepare, read_lines(raw))
    )
