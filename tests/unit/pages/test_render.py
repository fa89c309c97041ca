"""Pages: texts stay texts, programs stay in their element, scores are shown as they stand."""

from pathlib import Path

from convs2s.pages.render import render_page, script, show_in_report


def test_a_text_is_shown_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "bleu.txt").write_text(
        "BLEU <13a> & more\n  36.52 ± 0.36\n", encoding="utf-8"
    )
    show_in_report(source=tmp_path / "bleu.txt", output=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<pre>BLEU &lt;13a&gt; &amp; more\n  36.52 ± 0.36\n</pre>" in page
    assert "<title>bleu.txt</title>" in page


def test_a_page_stays_the_one_that_it_is(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<!DOCTYPE html>\n<p>all\n")
    show_in_report(source=tmp_path / "report.html", output=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "<!DOCTYPE html>\n<p>all\n"


def test_a_text_is_escaped_and_a_program_cannot_end_its_element() -> None:
    page = render_page("text.html.j2", {"title": "</title>", "text": "<b>&"})
    assert "<pre>&lt;b&gt;&amp;</pre>" in page
    assert page.count("</title>") == 1
    assert script("a = '</script><!--';\r\n") == "a = '\\x3C/script>\\x3C!--';\n"
