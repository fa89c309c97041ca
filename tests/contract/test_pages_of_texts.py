"""Pages: texts stay texts, and programs stay in their element."""

from pathlib import Path

import pytest

from convs2s.pages.render import render_page, script, show_in_report


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        (
            "bleu.txt",
            "BLEU <13a> & more\n  36 ±\n",
            "<pre>BLEU &lt;13a&gt; &amp; more\n",
        ),
        ("report.html", "<!DOCTYPE html>\n<p>all\n", "<!DOCTYPE html>\n<p>all\n"),
    ],
)
def test_a_text_is_shown_as_it_stands_and_a_page_stays_the_one_that_it_is(
    tmp_path: Path, name: str, text: str, shown: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    show_in_report(source=tmp_path / name, output=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert shown in page
    assert (page == text) == name.endswith("html")


def test_a_title_is_escaped_and_a_program_cannot_end_its_element() -> None:
    page = render_page("text.html.j2", {"title": "</title>", "text": "<b>"})
    assert page.count("</title>") == 1
    assert script("a = '</script><!--';\r\n") == "a = '\\x3C/script>\\x3C!--';\n"
