"""The sentences of a line, by sentencex and the abbreviations of Moses."""

from functools import cache

from sentencex import segment

from convs2s.errors import UserError
from convs2s.text.moses import Tokenizer

LONGEST_LINE = 1 << 16  # characters; of open quotes, sentencex's time grows with the square

_tokenizer = cache(Tokenizer)


def split_sentences(line: str, language: str, number: int = 1) -> list[str]:
    """Return the sentences of a line of raw text; the line itself where it has no two.

    sentencex knows the marks and quotes of many languages and few abbreviations: it ends a sentence
    after the "M." of "M. Dupont". Here none ends after what Moses' tokenizer takes for an
    abbreviation in this language (en_title: English), and none is without a letter, such as the
    "1." of a list. A UserError refuses a line of over 65,536 characters by its ``number``.
    """
    if len(line) > LONGEST_LINE:
        raise UserError(
            f"line {number} has {len(line):,} characters, and {LONGEST_LINE:,} is the most that is "
            "split into sentences: put each paragraph on a line of its own"
        )
    language, sentences = language.partition("_")[0], list[str]()
    # It fails on some blanks that are no spaces, such as U+2028.
    for part in segment(language, " ".join(line.split())):
        last = sentences[-1].rstrip().rpartition(" ")[2].lstrip("([{\"'“‘«") if sentences else ""
        alone = sentences and not all(any(map(str.isalpha, text)) for text in (sentences[-1], part))
        if alone or (last.endswith(".") and _tokenizer(language).is_abbreviation(last[:-1], part)):
            sentences[-1] += part
        else:
            sentences.append(part)
    return list(map(str.strip, sentences)) if len(sentences) > 1 else [line]
