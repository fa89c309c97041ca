"""The corpus of help pages: which paragraphs become pairs, and in which split."""

import io
import tarfile
from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from help_corpus import (
    read_pages,
    split_of,
    split_pairs,
    write_corpus,
)

FOLDER = "./usr/share/libreoffice/help/de/text/"
PAGE = """<title>Hilfe</title>
<h1 id="hd_1">Druck&auml;nderung</h1>
<p id="par_1" class="paragraph">Ein <span class="emph">Text</span>
 auf zwei Zeilen.</p> <p>ohne Kennung</p>
<p id="par_1">derselbe noch einmal</p>"""


def write_package(path: Path, pages: dict[str, str], member: str) -> None:
    """Write a Debian package, an ar archive with a compressed tar archive of the files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, text in pages.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    package = b"!<arch>\n"
    for name, content in (("debian-binary", b"2.0"), (member, data.getvalue())):
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n"
        package += header.encode() + content + b"\n" * (len(content) % 2)
    path.write_bytes(package)


def test_paragraphs_of_a_package(tmp_path: Path) -> None:
    path = tmp_path / "help.deb"
    pages = {f"{FOLDER}a/b.html": PAGE, f"{FOLDER}a/b.js": PAGE, "./other.html": PAGE}
    write_package(path, pages, "data.tar.xz")
    paragraphs = {"hd_1": "Druckänderung", "par_1": "Ein Text auf zwei Zeilen."}
    assert read_pages(path, "de") == {"a/b.html": paragraphs}


@pytest.mark.parametrize("member", ["data.tar.zst", None])
def test_another_file_is_refused(tmp_path: Path, member: str | None) -> None:
    path = tmp_path / "help.deb"
    if member is None:
        path.write_text("<html>")
    else:
        write_package(path, {}, member)
    with pytest.raises(ValueError, match=r"no Debian package|no data\.tar\.xz"):
        read_pages(path, "de")


def test_whole_pages_are_held_out_and_nothing_of_them_is_in_the_training_text(
    tmp_path: Path,
) -> None:
    english = {
        f"{number}.html": {"a": f"Line {number}", "b": "Example", "c": "42", "d": ""}
        for number in range(300)
    }
    german = {
        page: {"a": f"Zeile {page}", "b": "Beispiel", "c": "42", "d": "leer"}
        for page in english
    }
    splits = split_pairs(english, german)
    for name, pairs in splits.items():
        pages = [page for page in english if split_of(page) == name]
        assert pages
        repeated = [("Example", "Beispiel")] if name == "train" else []
        lines = [(english[page]["a"], german[page]["a"]) for page in pages]
        assert sorted(pairs) == sorted(lines + repeated)
    write_corpus(tmp_path, "de", splits)
    written = list(read_lines(tmp_path / "help_en_de.test.de"))
    assert written == [target for _, target in splits["test"]]
