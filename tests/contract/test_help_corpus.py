"""The corpus of help pages: which paragraphs become pairs, and in which split."""

from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from help_corpus import read_pages, split_of, split_pairs, write_corpus
from tests.support.archives import make_archive

FOLDER = "./usr/share/libreoffice/help/de/text/"
PAGE = """<title>Hilfe</title>
<h1 id="hd_1">Druck&auml;nderung</h1>
<p id="par_1" class="paragraph">Ein <span class="emph">Text</span>
 auf zwei Zeilen.</p> <p>ohne Kennung</p>
<p id="par_1">derselbe noch einmal</p>"""


def write_package(folder: Path, files: dict[str, bytes], member: str) -> Path:
    """Write a Debian package, an ar archive with a compressed tar archive of the files."""
    data = make_archive(folder / "data.tar.xz", files).read_bytes()
    package = b"!<arch>\n"
    for name, content in (("debian-binary", b"2.0"), (member, data)):
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n"
        package += header.encode() + content + b"\n" * (len(content) % 2)
    path = folder / "help.deb"
    path.write_bytes(package)
    return path


def test_paragraphs_of_a_package(tmp_path: Path) -> None:
    names = (f"{FOLDER}a/b.html", f"{FOLDER}a/b.js", "./other.html")
    path = write_package(tmp_path, dict.fromkeys(names, PAGE.encode()), "data.tar.xz")
    paragraphs = {"hd_1": "Druckänderung", "par_1": "Ein Text auf zwei Zeilen."}
    assert read_pages(path, "de") == {"a/b.html": paragraphs}
    path = write_package(tmp_path, {}, "data.tar.zst")
    with pytest.raises(ValueError, match="no data"):
        read_pages(path, "de")
    path.write_text("<html>")
    with pytest.raises(ValueError, match="no Debian package"):
        read_pages(path, "de")


def test_whole_pages_are_held_out_and_nothing_of_them_is_in_the_training_text(
    tmp_path: Path,
) -> None:
    english = {}
    german = {}
    for page in map(str, range(300)):
        english[page] = {"a": f"Line {page}", "b": "Example", "c": "42", "d": ""}
        german[page] = {"a": f"Zeile {page}", "b": "Beispiel", "c": "42", "d": "leer"}
    splits = split_pairs(english, german)
    for name, pairs in splits.items():
        pages = [page for page in english if split_of(page) == name]
        assert pages
        expected = [(f"Line {page}", f"Zeile {page}") for page in pages]
        if name == "train":
            expected.append(("Example", "Beispiel"))
        assert sorted(pairs) == sorted(expected)
    write_corpus(tmp_path, "de", splits)
    written = list(read_lines(tmp_path / "help_en_de.test.de"))
    assert written == [target for _, target in splits["test"]]
