"""Make a parallel corpus of LibreOffice's help pages, for the tasks mixed_en_de and mixed_en_fr.

``python tools/help_corpus.py``, typed in a clone, fetches three packages of Debian 12 (8 MB) and
writes the pairs below data/mixed. docs/mixed_corpus.md says what they are.
"""

import argparse
import hashlib
import html
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from convs2s.download.download import download_file
from convs2s.files.text import write_lines

POOL = "https://deb.debian.org/debian/pool/main/libr/libreoffice"
VERSION = "7.4.7-1+deb12u14"


class Package(NamedTuple):
    """The help pages of a language."""

    name: str
    sha256: str
    locale: str
    """Name of the folder of the language's pages."""


PACKAGES = {
    "en": Package(
        "en-us",
        "8faa840285734d6cfe1ed25537b48f07e74bd6412e3917bf8e5f8a653f7b3712",
        "en-US",
    ),
    "de": Package(
        "de", "00490b63c509ac96f7f212d6a6e40452d3e0d1f97ccf4b824dd5ec4c01e8277f", "de"
    ),
    "fr": Package(
        "fr", "c796530d3e95af1ea4d054076682efc8aad2b569ae9513f3d4a776b2df3fd206", "fr"
    ),
}

HELD_OUT = {0: "valid", 1: "test"}
"""Of 30 pages, one is for validation and one for the test; see `split_of`."""

_ONE_IN = 30
_PARAGRAPH = re.compile(r'<(h[1-6]|p) id="([^"]+)"[^>]*>(.*?)</\1>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
# An entry of an ar archive: a header of 60 bytes, then the file, which begins at an even byte.
_AR_START = b"!<arch>\n"
_AR_HEADER_BYTES = 60

Pair = tuple[str, str]
Pages = dict[str, dict[str, str]]
"""The paragraphs of each page, by the page's name and by their ids."""


def data_member(package: BinaryIO) -> BinaryIO:
    """Return a Debian package at the start of its last member, data.tar.xz.

    Raises:
        ValueError: the file is no Debian package, or its content is compressed in another way.
    """
    if package.read(len(_AR_START)) != _AR_START:
        message = "no Debian package"
        raise ValueError(message)
    while header := package.read(_AR_HEADER_BYTES):
        name = header[:16].decode("ascii").rstrip(" /")
        if name == "data.tar.xz":
            return package
        size = int(header[48:58])
        package.seek(size + size % 2, 1)
    message = "the package has no data.tar.xz"
    raise ValueError(message)


def read_pages(path: Path, locale: str) -> Pages:
    """Return the paragraphs and headings of a package's help pages, without markup."""
    folder = f"./usr/share/libreoffice/help/{locale}/text/"
    pages: Pages = {}
    with (
        path.open("rb") as package,
        tarfile.open(fileobj=data_member(package), mode="r|xz") as archive,
    ):
        for member in archive:
            is_page = member.name.startswith(folder) and member.name.endswith(".html")
            content = archive.extractfile(member) if is_page else None
            if content is None:
                continue
            text = content.read().decode("utf-8")
            paragraphs = dict[str, str]()
            for match in _PARAGRAPH.finditer(text):
                words = html.unescape(_TAG.sub("", match[3])).split()
                paragraphs.setdefault(match[2], " ".join(words))
            pages[member.name.removeprefix(folder)] = paragraphs
    return pages


def split_of(page: str) -> str:
    """Return train, valid or test: whole pages are held out, as their paragraphs are much alike."""
    digest = hashlib.sha256(page.encode()).digest()
    return HELD_OUT.get(int.from_bytes(digest[:8]) % _ONE_IN, "train")


def pairs_of_page(source: dict[str, str], target: dict[str, str]) -> Iterator[Pair]:
    """Yield the paragraphs that have a translation, which is not the paragraph itself."""
    for identifier, text in source.items():
        translation = target.get(identifier, "")
        if text and translation and text != translation:
            yield text, translation


def split_pairs(source: Pages, target: Pages) -> dict[str, list[Pair]]:
    """Return the distinct pairs of each split.

    A held-out pair of which a side is also in the training text, or was held out before, is left
    out: of a phrase such as "Example" the model would only have to remember the translation.
    """
    splits: dict[str, dict[Pair, None]] = {"train": {}, "valid": {}, "test": {}}
    for page in sorted(source.keys() & target.keys()):
        for pair in pairs_of_page(source[page], target[page]):
            splits[split_of(page)].setdefault(pair)
    known = {line for pair in splits["train"] for line in pair}
    kept = {"train": list(splits["train"])}
    for name in HELD_OUT.values():
        kept[name] = []
        for pair in splits[name]:
            if known.isdisjoint(pair):
                known.update(pair)
                kept[name].append(pair)
    return kept


def write_corpus(folder: Path, target: str, splits: dict[str, list[Pair]]) -> None:
    """Write both sides of each split: ``help_en_de.train.en`` and so on."""
    for name, pairs in splits.items():
        for index, language in enumerate(("en", target)):
            path = folder / f"help_en_{target}.{name}.{language}"
            write_lines(path, [pair[index] for pair in pairs])
        print(f"{folder}/help_en_{target}.{name}: {len(pairs)} pairs")


def main() -> None:
    """Fetch the packages, unless they are there, and write the corpora."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("data/mixed"))
    parser.add_argument(
        "--mirror", action="append", default=[], help="a folder or URL to ask first"
    )
    arguments = parser.parse_args()
    pages = dict[str, Pages]()
    for language, package in PACKAGES.items():
        name = f"libreoffice-help-{package.name}_{VERSION}_all.deb"
        path = arguments.folder / name
        download_file(
            f"{POOL}/{name}",
            path,
            mirrors=arguments.mirror,
            sha256=package.sha256,
        )
        pages[language] = read_pages(path, package.locale)
    for target in ("de", "fr"):
        splits = split_pairs(pages["en"], pages[target])
        write_corpus(arguments.folder, target, splits)


if __name__ == "__main__":
    main()
