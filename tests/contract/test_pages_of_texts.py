"""Pages: texts stay texts, and programs stay in their element."""

from pathlib import Path

from convs2s.pages.render import render_page, script, show_in_report


def test_a_text_is_shown_as_it_stands_and_a_page_stays_the_one_that_it_is(
    tmp_path: Path,
) -> None:
    text, page, shown = (tmp_path / name for name in ("a.txt", "b.html", "page.html"))
    text.write_text("BLEU <13a> & more\n  36 ±\n", encoding="utf-8")
    show_in_report(source=text, output=shown)
    assert "<pre>BLEU &lt;13a&gt; &amp; more\n  36 ±" in shown.read_text("utf-8")
    page.write_text("<!DOCTYPE html>\n<p>all\n", encoding="utf-8")
    show_in_report(source=page, output=shown)
    assert shown.read_bytes() == page.read_bytes()


def test_a_title_is_escaped_and_a_program_cannot_end_its_element() -> None:
    page = render_page("text.html.j2", {"title": "</title>", "text": "<b>"})
    assert page.count("</title>") == 1
    assert script("a = '</script><!--';\r\n") == "a = '\\x3C/script>\\x3C!--';\n"
