"""What is said of text that is not UTF-8: how a word reads in each encoding that it may have."""

from pathlib import Path

from convs2s.files.encodings import encoding_advice
from convs2s.files.text import read_lines
from tests.support.refusals import refusal, refuses, rows, says

# A text, its encoding, the encodings in the order in which they are named, and the word as the
# first of them spells it. Where two read the whole text alike, the first stands for both.
ENCODED = r"""
Un caf\u00e9 \u00e0 l\u2019\u00e9t\u00e9 => cp1252 => WINDOWS-1252 ... WINDOWS-1250 => '\u00e0'
Gr\u00f6\u00dfe => latin1 => WINDOWS-1252 => Gr\u00f6\u00dfe
Bucure\u0219ti, \u0219i => iso8859_16 => WINDOWS-1250 ... ISO-8859-16 => Bucure\u015fti
\u015etiin\u0163\u0103 => cp1250 => WINDOWS-1250 ... ISO-8859-16 => \u015etiin\u0163\u0103
P\u0159\u00edli\u0161 \u017elu\u0165 \u2013 => cp1250 => WINDOWS-1250 => P\u0159\u00edli\u0161
P\u0159\u00edli\u0161 \u017elu\u0165 => iso8859_2 => ISO-8859-2 => P\u0159\u00edli\u0161
a\t\u041f\u0440\u0438\u0432\u0435\u0442 => cp1251 => WINDOWS-1251 => \u041f\u0440\u0438
\u041f\u0440\u0438\u0432\u0435\u0442 => koi8_r => KOI8-R => \u041f\u0440\u0438\u0432\u0435\u0442
\u4f60\u597d\u4e16\u754c => gb18030 => GB18030 => \u4f60\u597d\u4e16\u754c
\u3053\u3093\u306b\u3061\u306f => shift_jis => SHIFT_JIS => \u3053\u3093\u306b\u3061\u306f
"""


def test_a_word_is_shown_in_each_likely_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text, encoding, named, word in rows(ENCODED):
        path.write_bytes(b"plain\n" + f"{text}\n".encode(encoding))
        message = refusal(list, read_lines(path))
        says(
            message, "a.txt:2: not UTF-8: byte 0x", word, "iconv -f ", "UTF-8 OLD > NEW"
        )
        places = [message.index(name) for name in named.split(" ... ")]
        assert places == sorted(places)
    # The first word alone could be of many encodings: what comes later tells as well.
    path.write_bytes("café\nBucureşti\n".encode("cp1250"))
    refuses("a.txt:1: not ... WINDOWS-1250 'Bucureşti'", list, read_lines(path))


def test_bytes_that_are_no_text() -> None:
    for sample, words in (
        (b"\xff\xfea\0", "mark is that of UTF-16: iconv -f UTF-16 -t"),
        (b"\xfe\xff\0a", "mark is that of UTF-16"),
        (b"\xff\xfe\0\0a\0\0\0", "mark is that of UTF-32"),
        (b"\xff\0\1", "NUL bytes: it is not text, or it is UTF-16 without"),
        # All bytes: no encoding of Latin script reads control characters as a word.
        (bytes(range(128, 256)), "iconv"),
        (b"a" * 100 + b"\xff", f"'{'a' * 20}\u00ff'"),
        (("\u4f60\u597d" * 100).encode("gb18030"), "GB18030 '\u4f60\u597d\u4f60"),
    ):
        says(encoding_advice(sample), words)
