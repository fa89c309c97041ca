"""Documents that cannot be read, and documents that are given to ``convs2s translate``."""

from pathlib import Path

import pytest

from convs2s.documents.read import read_document
from convs2s.text.plain_text import check_plain_text
from tests.conftest import Terminal
from tests.support.archives import make_archive
from tests.support.refusals import refusal, refuses, rows, says

PART = "word/document.xml"

# A document => its bytes in Latin-1 => the message.
DAMAGED = r"""
a.odt => => unknown kind ... .txt, .srt ... .docx
a => => unknown kind
a.txt => one\ntw\xf6\n => a.txt:2: not UTF-8 ... 0xf6 ... iconv
a.srt => \xff\xfen\0o\0 => a.srt:1: not UTF-8
a.html => <meta charset=klingon> => unknown encoding 'klingon'
a.html => <meta charset="utf-8">\n\xe9 => a.html:2: not UTF-8
a.po => msgid "a"\nmsgtr "b"\n => a.po: not a catalogue ... line 2
a.docx => PK no zip => a.docx: truncated or damaged
"""


def test_what_is_no_such_document_is_refused(tmp_path: Path) -> None:
    for name, text, words in rows(DAMAGED):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
        refuses(words, read_document, tmp_path / name)


def test_what_is_no_word_document_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    path = tmp_path / "a.docx"
    entities = b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    for name, content, words in (
        ("a.txt", b"a", "without word/document.xml"),
        (PART, b"<a>", "a.docx#word/document.xml: not XML"),
        (PART, entities, "document type"),
        (PART, "<a/>".encode("utf-16"), "not XML in UTF-8"),
        (PART, bytes(65 << 20), "a decompression bomb"),
    ):
        make_archive(archive, {name: content}).rename(path)
        refuses(words, read_document, path)
    path.write_bytes(make_archive(archive, {PART: b"<a/>"}).read_bytes()[:-30])
    refuses("a.docx: ", read_document, path)


MARKS = r"""<a_ <a\n <a_b=' <!-- [ ![a]( [a]:_b\n ` **a_ *_a\n > |_a\n|-\n #\n & &#1; <http: ]("""


@pytest.mark.parametrize("part", MARKS.split())
@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_marks_without_ends_stay_as_they_are(
    tmp_path: Path, part: str, suffix: str
) -> None:
    """A parser whose time grows with the square of the length does not end here for minutes."""
    mark = part.replace("_", " ").replace(r"\n", "\n")
    path = tmp_path / f"document{suffix}"
    path.write_text(mark * (50_000 // len(mark)))
    document = read_document(path)
    same = document.translated(document.texts)
    assert same.split() == path.read_bytes().split()  # a wrapped line may be joined


# The bytes of a document in Latin-1 => the message.
DOCUMENTS = r"""
<!DOCTYPE html>\n<p>w1 => :1: is a page in HTML
\xef\xbb\xbf\n\n  <html lang=en>\n => :3: is a page in HTML
<p class='a'>w1</p>\n => :1: is a part of a page in HTML
<?xml version="1.0"?>\n => :1: is XML
1\r\n00:00:01,000 --> 00:00:02,000\r\nw1\r\n => :2: is subtitles
\xef\xbb\xbfWEBVTT\n => :1: is WebVTT subtitles
# a comment\nmsgid "w1"\nmsgstr ""\n => :2: is gettext's messages
%PDF-1.7\n%\xe2\xe3\n => :1: is a PDF document
PK => :1: is a Word document
"""


def test_documents_are_not_translated_line_by_line(
    run: Terminal, model: Path, tmp_path: Path
) -> None:
    word = make_archive(tmp_path / "a.zip", {PART: b"<a/>"}).read_bytes()
    file = tmp_path / "in.txt"
    hint = "convs2s translate-document"
    for text, words in rows(DOCUMENTS):
        content = word if text == "PK" else text.encode("latin-1")
        file.write_bytes(content)
        says(refusal(check_plain_text, file), f"in.txt{words}", hint)
        said = run.refused("translate", model, text=content)
        says(said, f"standard input{words}", hint)


PLAIN = """2 < 3 and <b>bold</b> is not <p>
<3 you
1
a --> b
00:01 it began --> 00:02
<unk> <s>
WEBVTT is a format
msgid is a word
# one * two
- three
PK
"""


def test_plain_text_with_signs_of_markup_is_translated(
    run: Terminal, model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    for text in (PLAIN, "<3 you", "", "<unk>\n"):
        file.write_text(text)
        check_plain_text(file)
    printed = run("translate", model, "--quiet", text=PLAIN.encode())
    assert printed.count("\n") == PLAIN.count("\n")
