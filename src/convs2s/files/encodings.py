"""Guess the encoding of a text that is not UTF-8.

The text is not converted here. Most encodings with one byte per character can decode any bytes, so
only a person who knows the language can tell which encoding spells the words right. Therefore the
advice shows how each likely encoding spells the same word.
"""

import re
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterable

# Byte order marks. Those of UTF-32 come first, because that of UTF-32LE begins with that of
# UTF-16LE.
_MARKS = (
    (BOM_UTF32_LE, "UTF-32"),
    (BOM_UTF32_BE, "UTF-32"),
    (BOM_UTF16_LE, "UTF-16"),
    (BOM_UTF16_BE, "UTF-16"),
)

# Both iconv and Python know these names. If several encodings decode a text to the same characters,
# the first of them is named.
_LATIN: tuple[str, ...] = (
    "WINDOWS-1252",
    "WINDOWS-1250",
    "ISO-8859-16",
    "ISO-8859-2",
    "ISO-8859-15",
    "WINDOWS-1254",
    "WINDOWS-1257",
)
_OTHER_SCRIPTS = (
    "GB18030",
    "BIG5",
    "SHIFT_JIS",
    "EUC-JP",
    "EUC-KR",
    "WINDOWS-1251",
    "KOI8-R",
    "WINDOWS-1253",
    "WINDOWS-1255",
    "WINDOWS-1256",
)
# Words in Latin script have only a few letters that are not ASCII. So the script may be another one
# if, in the words with bytes that are not ASCII, more than this share of the bytes is not ASCII.
_LEAST_OF_OTHER_SCRIPTS = 0.6

# The beginning of a word with a byte that is not ASCII. Its length is limited, because in a script
# without blanks a word is as long as a sentence. It starts where the word starts, so that its first
# character is whole.
_WORD = re.compile(rb"(?<![^\x00-\x20])[^\x00-\x20]{0,20}[\x80-\xff][^\x00-\x20]{0,20}")
# A part of a word with a byte that is not ASCII. It is used only if no word has such a byte near
# its beginning.
_WITHIN_LONG_WORD = re.compile(rb"[^\x00-\x20]{0,20}[\x80-\xff][^\x00-\x20]{0,20}")
_MOST_WORDS = 1_000
_MOST_READINGS = 5

# What no text contains that was decoded correctly:
# - between two letters, a symbol that is not ASCII, except apostrophes, hyphens and the dot of
#   Catalan;
# - the ordinals ª and º before a letter or digit, within a word or at its start.
_WITHIN_WORD = re.compile(
    r"(?<=[^\W\d_])[^\w\s\x00-\x7f’‘´–—·](?=[^\W\d_])|\w[ªº]\w|\b[ªº]\w"
)


def encoding_advice(sample: bytes) -> str:
    """Return how to convert a text that is not UTF-8 to UTF-8.

    ``sample`` consists of whole lines of the text, beginning with the first line that is not UTF-8.
    If that is the first line of the text, it may have a byte order mark, which tells the encoding.
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return f"its byte order mark is that of {encoding}: {_command(encoding)}"
    if b"\0" in sample:
        return (
            "it contains NUL bytes: it is not text, or it is UTF-16 without a byte order mark: "
            f"{_command('UTF-16LE')}"
        )
    found = _WORD.findall(sample) or _WITHIN_LONG_WORD.findall(sample)
    words = list(dict.fromkeys(found))[:_MOST_WORDS]
    encodings = _LATIN
    joined = b"".join(words)
    if _count_high(joined) > _LEAST_OF_OTHER_SCRIPTS * len(joined):
        encodings = _OTHER_SCRIPTS + _LATIN
    likely = _likely_encodings(sample, encodings)
    if not likely:
        return "no known encoding fits it: is it text?"

    def spellings(word: bytes) -> dict[str, str]:
        # With "ignore", a character that is cut off at the end of the word is left out.
        return {name: word.decode(name, "ignore") for name in likely}

    def distinctness(word: bytes) -> tuple[int, int]:
        """Return the number of different spellings of a word, and its length."""
        return len(set(spellings(word).values())), len(word)

    # The word with the most spellings tells the encodings apart best.
    spelled = spellings(max(words, key=distinctness))
    if len(spelled) == 1:
        ((name, text),) = spelled.items()
        return f"if '{text}' is spelled right: {_command(name)}"
    shown = ", ".join(f"{name} '{text}'" for name, text in spelled.items())
    return (
        f"convert it from the encoding that spells this word right: {shown}; then: "
        f"{_command('ENCODING')}"
    )


def _command(encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 OLD > NEW"


def _count_high(text: bytes) -> int:
    """Return the number of bytes that are not ASCII."""
    return sum(byte >= 0x80 for byte in text)


def _likely_encodings(sample: bytes, encodings: Iterable[str]) -> list[str]:
    """Return the encodings that a sample most likely has, the likeliest first.

    No two of them decode the sample to the same text. The likeliest encoding is the one whose text
    has the fewest faults (`_faults`). An encoding is left out if it has many more faults: more by a
    twentieth of the number of bytes that are not ASCII.
    """
    texts: dict[str, str] = {}
    for name in encodings:
        try:
            text = sample.decode(name)
        except UnicodeDecodeError:
            continue
        if text not in texts.values():
            texts[name] = text
    faults = {name: _faults(text) for name, text in texts.items()}
    if not faults:
        return []
    most_faults = min(faults.values()) + _count_high(sample) // 20
    likely = [name for name in faults if faults[name] <= most_faults]
    likely.sort(key=lambda name: faults[name])
    return likely[:_MOST_READINGS]


def _faults(text: str) -> int:
    """Count the signs of a wrong encoding in a text.

    These are symbols and capital letters within words, and control characters.
    """
    count = len(_WITHIN_WORD.findall(text))
    previous = " "
    for character in text:
        if character > "\x7f":
            # Control characters, and code points that are private or not assigned.
            is_no_text = unicodedata.category(character) in ("Cc", "Co", "Cn")
            is_capital_within = character.isupper() and previous.islower()
            if is_no_text or is_capital_within:
                count += 1
        previous = character
    return count
