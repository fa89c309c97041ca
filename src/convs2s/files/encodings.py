"""Which encodings text may have that is not UTF-8, told from its bytes.

Nothing is converted here: most encodings with one byte for a character read any bytes without an
error, so only a reader of the language can tell which one spells the words right. The advice
therefore shows how the same word reads in each encoding that the bytes allow.
"""

import re
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterable

# The marks of UTF-32 come first, as that of UTF-32LE begins with that of UTF-16LE.
_MARKS = (
    (BOM_UTF32_LE, "UTF-32"),
    (BOM_UTF32_BE, "UTF-32"),
    (BOM_UTF16_LE, "UTF-16"),
    (BOM_UTF16_BE, "UTF-16"),
)

# Both iconv and Python know these names. Of encodings that read a text alike, the first is named.
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
# Share of the bytes that are not ASCII, in words that have such bytes. Words of a Latin script have
# a few such letters; words of other scripts have little else.
_LEAST_OF_OTHER_SCRIPTS = 0.6

# The beginning of a word, with a byte that is not ASCII. A script without blanks has long words,
# and their beginning is that of a character.
_WORD = re.compile(rb"(?<![^\x00-\x20])[^\x00-\x20]{0,20}[\x80-\xff][^\x00-\x20]{0,20}")
_WITHIN_LONG_WORD = re.compile(rb"[^\x00-\x20]{0,20}[\x80-\xff][^\x00-\x20]{0,20}")
_MOST_WORDS = 1_000
_MOST_READINGS = 5

# A character that is no letter of Latin script, between two letters. Apostrophes, hyphens and the
# dot of Catalan are allowed there.
_WITHIN_WORD = re.compile(
    r"(?<=[^\W\d_])[^\w\s\x00-\x7f’‘´–—·](?=[^\W\d_])|\w[ªº]\w|\b[ªº]\w"
)


def encoding_advice(sample: bytes) -> str:
    """Return how to convert a text whose bytes are not UTF-8.

    ``sample`` is a part of the text, of whole lines, that begins with the line that is not UTF-8.
    If that is the first line of the text, a byte order mark tells the encoding.
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return f"its byte order mark is that of {encoding}: {_command(encoding)}"
    if b"\0" in sample:
        return (
            "it has NUL bytes, so it is no text, or UTF-16 without a byte order mark: "
            f"{_command('UTF-16LE')}"
        )
    found = _WORD.findall(sample) or _WITHIN_LONG_WORD.findall(sample)
    words = list(dict.fromkeys(found))[:_MOST_WORDS]
    encodings = _LATIN
    joined = b"".join(words)
    if _count_high(joined) > _LEAST_OF_OTHER_SCRIPTS * len(joined):
        encodings = _OTHER_SCRIPTS + _LATIN
    readings = _readings(sample, encodings)
    if not readings:
        return "no encoding that is known here has such text: is it text?"

    def spellings(word: bytes) -> dict[str, str]:
        # Without a character that is cut at the end of the word.
        return {name: word.decode(name, "ignore") for name in readings}

    # The word with the most spellings, of several the longest.
    spelt = spellings(
        max(words, key=lambda word: (len({*spellings(word).values()}), len(word)))
    )
    if len(spelt) == 1:
        ((name, text),) = spelt.items()
        return f"if '{text}' is spelt right: {_command(name)}"
    shown = ", ".join(f"{name} '{text}'" for name, text in spelt.items())
    return (
        f"convert it by the encoding that spells this word right: {shown}; then: "
        f"{_command('ENCODING')}"
    )


def _command(encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 OLD > NEW"


def _count_high(text: bytes) -> int:
    """Return the number of bytes that are not ASCII."""
    return sum(byte >= 0x80 for byte in text)


def _readings(sample: bytes, encodings: Iterable[str]) -> list[str]:
    """Return the most likely encodings, each of which reads the sample in another way.

    The likeliest comes first. An encoding has the number of faults that `_faults` counts in the
    text; those with many more than the best one are left out.
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
    most = min(faults.values()) + _count_high(sample) // 20
    likely = [name for name in faults if faults[name] <= most]
    likely.sort(key=faults.__getitem__)
    return likely[:_MOST_READINGS]


def _faults(text: str) -> int:
    """Count what no right reading of a text has: controls, symbols and capitals within words."""
    count = len(_WITHIN_WORD.findall(text))
    previous = " "
    for character in text:
        if character > "\x7f":
            is_no_text = unicodedata.category(character) in ("Cc", "Co", "Cn")
            is_capital_within = character.isupper() and previous.islower()
            count += is_no_text or is_capital_within
        previous = character
    return count
