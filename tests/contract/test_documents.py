"""``convs2s translate-document``: what is text is translated, and all else stays as it is."""

import io
import re
import zipfile
from html import unescape
from pathlib import Path

import polib
import pytest

from convs2s.api.translator import Translator
from convs2s.cli.main import main
from convs2s.documents.passages import parts_warning
from convs2s.documents.read import Document, read_document
from tests.support.refusals import rows, says

HTML = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>A page</title>
<style>p > b {color: red}</style><script>if (a < b) f("<p>no</p>")</script></head>
<!-- <p>not this</p> --><body class="a > b">
<p>The man <b>sees</b>
   two&nbsp;<i>red</i> cars &amp; caf&eacute;s.</p><pre>as
  it is</pre><p>Use <code>f(x)</code> here.<br>R & D, 2 < 3</p>
<img alt="alone"><ul><li><a href='x'>A link</a>.<li>100</ul><textarea>no</textarea></body>
"""

MARKDOWN = """---
title: My page
---
# The title #

The man **sees** two
*red* cars with `code` and [a link](http://x.org "title").
See <https://x.org/a_b>, 2 * 3 and snake_case.

> A quoted text that goes
> on here  
> after a hard break

1. One item
   goes on
   - [ ] a task, see [this][1] and ![alt](x.png)

| red cars | b \\| c |
|---|:-:|
| red cars | `x` |

```python
not = "this"
```

    nor this

<div>nor this</div>

[1]: http://x.org
"""  # noqa: W291

SRT = """1
00:00:01,000 --> 00:00:02,000
<i>The man sees
two cars</i>

1
00:00:03,000 --> 00:00:04,000
- Hello.
- {\\an8}Hi!

42

Still the same
3
00:00:05,000 --> 00:00:06,000 X1:40
"""

VTT = """WEBVTT - The title

STYLE
::cue { color: red }

NOTE A note
of two lines

first cue
00:01.000 --> 00:02.000 align:start
<v Roger>R&amp;B is <c.x>loud</c>
- Yes

00:03.000 --> 00:04.000
<00:03.100>one <00:03.200>two
"""

TEXT = """A title

This is a paragraph whose lines are wrapped at about
sixty columns, so that they go on in the next line and
end here.

Roses are red
violets are blue
  - An item of the list that is long enough for two lines
    is here
> A quoted text that is long enough for two lines, and so
> it goes on
"""

PO = r"""# A comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\n"

#. For translators
#: a.c:1 b.c:2
#, python-format
msgid "Hello %(name)s!\n"
msgstr ""

msgctxt "menu"
msgid "Open"
msgstr "Ouvrir"

#, fuzzy
#| msgid "old"
msgid "new"
msgstr ""

msgid "%d car"
msgid_plural "%d cars"
msgstr[0] ""
msgstr[1] ""

#~ msgid "gone"
#~ msgstr ""
"""


def document_of(content: str | bytes, suffix: str, folder: Path) -> Document:
    path = folder / f"document{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_document(path)


def in_capitals(document: Document) -> bytes:
    return document.translated([text.upper() for text in document.texts])


WHOLE = {".html": HTML, ".md": MARKDOWN, ".srt": SRT, ".vtt": VTT, ".txt": TEXT}
# Markup without an end, alone or wrong; numbers of no character; nothing.
ODD = r"""
.htm => <p>One <b>two</p> three <a href='x>y <!-- z
.htm => One</b> & <3 two<br/><b></b> <b> </b>three
.md => One **two *three* [four](x\n\n- \n\n`five\n\n#\n
.md => [![badge](a.svg)](b) text \\* \\_ &copy; [^1]\n\n[^1]: A note\n
.srt => No times\nat all\n
.txt => a\r\rb\x0bc\u2028d\x85
.html => One &#1; &#x1F; &#65534; &#1114112; two.\n
.md => One &#1; &#x1F; &#65534; &#1114112; two.\n
.html =>
.md =>
.srt =>
.vtt =>
.txt =>
.po =>
"""


def test_text_that_stays_leaves_every_byte(tmp_path: Path) -> None:
    for suffix, content in (*WHOLE.items(), *rows(ODD)):
        for change in (content, f"\ufeff{content}", content.replace("\n", "\r\n")):
            document = document_of(change, suffix, tmp_path)
            assert document.translated(document.texts) == change.encode()


def test_html_keeps_its_encoding(tmp_path: Path) -> None:
    page = '<meta charset="ISO-8859-1"><p>Un caf\xe9 \u20ac &eacute;'
    content = page.encode("cp1252")
    document = document_of(content, ".html", tmp_path)
    assert document.texts == ["Un caf\xe9 \u20ac \xe9"]
    assert document.translated(document.texts) == content
    done = document.translated(["\u0219i \xe9 <b>"])
    assert done.endswith(b"<p>&#537;i &eacute; &lt;b>")


def test_texts_are_whole_sentences_and_nothing_else(tmp_path: Path) -> None:
    page = document_of(HTML, ".html", tmp_path).texts
    assert "Use f(x) here." in page
    assert not re.search("no|not|alone", " ".join(page))
    subtitles = document_of(SRT, ".srt", tmp_path).texts
    assert subtitles == ["The man sees two cars", "Hello.", "Hi!", "Still the same"]
    assert document_of(TEXT, ".txt", tmp_path).texts[2:] == [
        "Roses are red",
        "violets are blue",
        "An item of the list that is long enough for two lines is here",
        "A quoted text that is long enough for two lines, and so it goes on",
    ]


MARKUP = {
    ".html": r"<[^!>]*>|<!D.*>|<!--.*-->|<(?:sc|st|p).*</(?:sc|st)\w+>|f\(x\)",
    ".vtt": r"<[^>]*>|(?s:\A.*?cue\n)|.*-->.*",
    ".srt": r"<[^>]*>|\{.*\}|.*-->.*",
}


def test_text_is_translated_and_markup_is_not(tmp_path: Path) -> None:
    for suffix, kept in MARKUP.items():
        content = WHOLE[suffix]
        done = in_capitals(document_of(content, suffix, tmp_path)).decode()
        assert done != content
        assert unescape(done).upper() == unescape(content).upper()
        assert re.findall(kept, done) == re.findall(kept, content)


def test_code_and_links_of_markdown_stay(tmp_path: Path) -> None:
    done = in_capitals(document_of(MARKDOWN, ".md", tmp_path)).decode()
    head, rest = done.split("# THE TITLE #\n")
    assert head == "---\ntitle: My page\n---\n"
    assert rest.startswith(
        "\nTHE MAN **SEES** TWO\n*RED* CARS WITH `code` AND "
        '[A LINK](http://x.org "title").\nSEE <https://x.org/a_b>, 2 * 3 AND SNAKE_CASE.\n'
        "\n> A QUOTED TEXT THAT GOES\n> ON HERE  \n> AFTER A HARD BREAK\n"
        "\n1. ONE ITEM\n   GOES ON\n   - [ ] A TASK, SEE [THIS][1] AND ![alt](x.png)\n"
        "\n| RED CARS | B \\| C |\n|---|:-:|\n| RED CARS | `x` |\n"
    )
    assert rest.split("`x` |\n")[1] == MARKDOWN.split("`x` |\n")[1]


# A page; translations of its texts, which are each whole sentence and then its parts; what the page
# becomes; and how many of it were translated in parts, of which the user is warned. In this order:
# - the tags are put where the part's translation is, also of words that are there twice;
# - where it is not there, or in another order, each part has its own translation;
# - a full stop goes that no source has, in the whole or in a part;
# - one text alone is not translated twice;
# - line breaks stay about where they are.
TAGS = r"""
<p>The <b>man</b> sees it. => L'homme le voit.|Le|homme|voit. => <p>L'<b>homme</b> le voit. => 0
<p>It is<b>n't</b> red => Ce n'est pas rouge|C'est|Pas|rouge => <p>Ce n'est <b>pas</b> rouge => 0
<p>Ann sees <i>Ann</i>. => Anne voit Anne.|Anne voit|Anne => <p>Anne voit <i>Anne</i>. => 0
<p>Ann sees <i>Ann</i>. => Anne se voit.|Anne voit|Anne => <p>Anne voit <i>Anne</i>. => 1
<p>The <b>red</b> <i>car</i>. => Auto rouge.|Une|rouge|auto => <p>Une <b>rouge</b> <i>auto</i>. => 1
<p>A <b>B</b> => b|un|x => <p>un <b>x</b> => 1
<h1>Two cars</h1> => Deux voitures. => <h1>Deux voitures</h1> => 0
<td>Two cars? => Deux voitures. => <td>Deux voitures. => 0
<td>One. Two => Un. Deux. => <td>Un. Deux. => 0
<td>See (it.) => Vois (le). => <td>Vois (le). => 0
<td>And so on => Ainsi de suite... => <td>Ainsi de suite... => 0
<td>Version 3.12 => Version 3.12. => <td>Version 3.12 => 0
<p>See <b>two</b> cars. => Vois deux autos.|Vois.|Deux.|autos. => <p>Vois <b>deux</b> autos. => 0
<li><b>Red</b>: 5</li> => 5 rouge|Rouge => <li><b>Rouge</b>: 5</li> => 0
<li> <b>Red</b> </li> => Rouge => <li> <b>Rouge</b> </li> => 0
one\ntwo three => un plus grand deux trois => un plus\ngrand deux trois => 0
one\ntwo\nthree => rien => rien => 0
<p>See <code>x</code> => Vois y|Vois => <p>Vois <code>x</code> => 1 paragraph or cell was
<td>A <img> C<td>A <b>B</b> => a|c|b|a|x => <td>a <img> c<td>a <b>x</b> => 2 paragraphs or
"""


def test_where_the_tags_of_a_sentence_go(tmp_path: Path) -> None:
    for content, translations, expected, warning in rows(TAGS):
        document = document_of(content, ".html", tmp_path)
        assert document.translated(translations.split("|")).decode() == expected
        assert (parts_warning(document.passages) or "0").startswith(warning)


def test_no_line_of_markdown_becomes_a_list(tmp_path: Path) -> None:
    document = document_of("one two three\nfour\n", ".md", tmp_path)
    done = document.translated(["un deux trois quatre - cinq"])
    assert done == b"un deux trois quatre -\ncinq\n"


def test_messages_without_a_translation_get_one(tmp_path: Path) -> None:
    done = in_capitals(document_of(PO, ".po", tmp_path)).decode()
    expected = PO
    for before, after in (
        ('s!\\n"\nmsgstr ""', 's!\\n"\nmsgstr "HELLO %(name)s!\\n"'),
        ('msgstr[0] ""', 'msgstr[0] "%d CAR"'),
        ('msgstr[1] ""', 'msgstr[1] "%d CARS"'),
    ):
        expected = expected.replace(before, after)
    assert str(polib.pofile(done)) == str(polib.pofile(expected))


SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
BODY = f"""<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document xmlns:w="{SPACE}" xmlns:mc='urn:x'><w:body>
<w:p w:rsid="1"><w:pPr><w:rPr><w:b/></w:rPr></w:pPr><w:r><w:t>The m</w:t></w:r><w:proofErr/>
<w:r><w:rPr><w:lang w:val="en"/></w:rPr><w:t xml:space="preserve">an </w:t></w:r>
<w:r><w:rPr><w:b/></w:rPr><w:t>sees</w:t></w:r>
<w:r><w:t xml:space='preserve'> R&amp;D.</w:t></w:r></w:p>
<w:p><w:r><w:t>One</w:t><w:tab/><w:t>two</w:t><w:t/><w:instrText>PAGE</w:instrText></w:r></w:p>
<w:tbl><w:p><w:r><w:t>Cell<!-- x --></w:t></w:r><w:r><w:txbx><w:p><w:r><w:t>Box</w:t></w:r></w:p>
</w:txbx><w:t>Text</w:t></w:r></w:p></w:tbl></w:body></w:document>"""
PARTS = {
    "[Content_Types].xml": "<Types/>",
    "word/document.xml": BODY,
    "word/footnotes.xml": f'<f xmlns="{SPACE}"><p><r><t>A note</t></r></p></f>',
    "word/styles.xml": f'<s xmlns="{SPACE}"><p><r><t>Not this</t></r></p></s>',
    "word/media/image.png": "\0\1",
}


def parts_of(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_only_the_texts_of_a_word_document_change(tmp_path: Path) -> None:
    path = tmp_path / "document.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in PARTS.items():
            archive.writestr(name, content)
    document = read_document(path)
    assert parts_of(document.translated(document.texts)) == PARTS
    done = parts_of(in_capitals(document))
    changed = [name for name in PARTS if done[name] != PARTS[name]]
    assert changed == ["word/document.xml", "word/footnotes.xml"]
    body = BODY.replace("<w:t>The m", '<w:t xml:space="preserve">THE MAN ')
    body = body.replace(">an <", "><").replace("sees", "SEES")
    for text in ("One", "two", "Box", "Text"):
        body = body.replace(f">{text}<", f">{text.upper()}<")
    assert done["word/document.xml"] == body
    assert "<t>A NOTE</t>" in done["word/footnotes.xml"]


def test_a_page_is_translated_as_typed(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>w1</title><p>w2 <img> w3<p>w5. W6 w7.<pre>w8</pre>")
    output = tmp_path / "out.html"
    typed = f"translate-document {model} --input {page} --output {output}"
    main(typed.split())
    said = capsys.readouterr()
    assert said.out == ""
    says(said.err, "convs2s: warning: 1 paragraph or cell was translated in parts")
    document = read_document(page)
    assert "w5. W6 w7." in document.texts
    found = Translator.load(model, device="cpu").translate(document.texts)
    assert output.read_bytes() == document.translated([one.text for one in found])
