"""The sentences of a line, by sentencex and the abbreviations of Moses."""

import re
from functools import cache

from sentencex import segment

from convs2s.text.moses import Tokenizer

_BLOCK = re.compile(r".{1,65536}(?: |$)|.{65536}")
"""Of a line up to a blank, as of open quotes sentencex's time grows with the square."""

_tokenizer = cache(Tokenizer)


def split_sentences(line: str, language: str) -> list[str]:
    """Return the sentences of a line of raw text; the line itself where it has no two.

    sentencex knows the marks and quotes of many languages and few abbreviations: it ends a sentence
    after the "M." of "M. Dupont". Here none ends after what Moses' tokenizer takes for an
    abbreviation in this language (en_title: English), and none, such as "1.", is without a letter.
    """
    language, sentences = language.partition("_")[0], list[list[str]]()
    # Of the last sentence: its text from the last word on, and whether any letter is in it.
    tail, has_letter = "", False
    # It fails on some blanks that are no spaces, such as U+2028.
    blocks = _BLOCK.findall(" ".join(line.split()))
    for part in (sentence for block in blocks for sentence in segment(language, block)):
        last, part_has_letter = tail.rstrip().lstrip("([{\"'“‘«"), any(map(str.isalpha, part))
        lacks_letters = bool(sentences) and not (has_letter and part_has_letter)
        is_short_form = last.endswith(".") and _tokenizer(language).is_abbreviation(last[:-1], part)
        if lacks_letters or is_short_form:
            sentences[-1].append(part)
            tail, has_letter = tail + part, has_letter or part_has_letter
        else:
            sentences.append([part])
            tail, has_letter = part, part_has_letter
        tail = tail[tail.rstrip().rfind(" ") + 1 :]
    return ["".join(parts).strip() for parts in sentences] if len(sentences) > 1 else [line]
