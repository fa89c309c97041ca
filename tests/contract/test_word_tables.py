"""The tables made of aligned text: the dictionary and the candidates of each word."""

from pathlib import Path

from convs2s.text.dictionary import build_dictionary, read_candidates, read_dictionary


def tables(folder: Path, sources: str, targets: str, links: str) -> str:
    """Count the links of lines of text; return the dictionary."""
    for name, text in (("en", sources), ("fr", targets), ("links", links)):
        (folder / name).write_text(text, "utf-8")
    build_dictionary(
        source=folder / "en",
        target=folder / "fr",
        links=folder / "links",
        dictionary=folder / "dictionary.tsv",
        candidates=folder / "candidates.tsv",
    )
    return (folder / "dictionary.tsv").read_text("utf-8")


DICTIONARY = """\
source\ttarget\tcount\tsource_count
b\ty\t1\t4
source\ty\t1\t2
c\tz\t1\t1
|||\té\t1\t1
"""
CANDIDATES = """\
source\ttargets
b\ty é
source\ty z
c\tz
|||\té
"""


def test_rows_go_by_frequency_then_by_letters(tmp_path: Path) -> None:
    sources = "source b\nsource\nb ||| c\nb b\n"
    targets = "z y\ny\né z\ne\n"
    links = "0-0 1-1\n0-0\n0-0 1-0 2-1\n\n"
    assert tables(tmp_path, sources, targets, links) == DICTIONARY
    words = {"b": "y", "source": "y", "c": "z", "|||": "é"}
    assert read_dictionary(tmp_path / "dictionary.tsv") == words
    assert (tmp_path / "candidates.tsv").read_text("utf-8") == CANDIDATES


def test_the_most_frequent_word_is_taken_and_no_reserved_one(tmp_path: Path) -> None:
    """``<unk>`` of the text is no translation, however often it is aligned."""
    sources = "word\n" * 11 + "<unk>\n"
    targets = "rare\n" + "zebra\n" * 3 + "often\n" * 2 + "a\n" + "<unk>\n" * 4 + "the\n"
    text = tables(tmp_path, sources, targets, "0-0\n" * 12)
    assert text.endswith("\tsource_count\nword\tzebra\t3\t11\n")
    found = list(read_candidates(tmp_path / "candidates.tsv"))
    assert found == [("word", ["zebra", "often", "a", "rare"])]
    # They are at most 100.
    words = [f"w{number:03}" for number in range(150)]
    tables(tmp_path, "a\n" * 150, "\n".join([*words, ""]), "0-0\n" * 150)
    assert list(read_candidates(tmp_path / "candidates.tsv")) == [("a", words[:100])]
