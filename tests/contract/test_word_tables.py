"""The tables made of aligned text: the dictionary and the candidates of each word."""

from pathlib import Path

from convs2s.files.text import read_lines, write_lines
from convs2s.text.dictionary import build_dictionary, read_candidates, read_dictionary


def tables(folder: Path, pairs: list[tuple[str, str]], links: list[str]) -> list[str]:
    """Count links; return the rows of the dictionary."""
    write_lines(folder / "en", (source for source, _ in pairs))
    write_lines(folder / "fr", (target for _, target in pairs))
    write_lines(folder / "links", links)
    build_dictionary(
        source=folder / "en",
        target=folder / "fr",
        links=folder / "links",
        dictionary=folder / "dictionary.tsv",
        candidates=folder / "candidates.tsv",
    )
    header, *rows = read_lines(folder / "dictionary.tsv")
    assert header == "source\ttarget\tcount\tsource_count"
    return rows


def test_rows_go_by_frequency_then_by_letters(tmp_path: Path) -> None:
    pairs = [("source b", "z y"), ("source", "y"), ("b ||| c", "é z"), ("b b", "e")]
    rows = tables(tmp_path, pairs, ["0-0 1-1", "0-0", "0-0 1-0 2-1", ""])
    assert rows == ["b\ty\t1\t4", "source\ty\t1\t2", "c\tz\t1\t1", "|||\té\t1\t1"]
    words = {"b": "y", "source": "y", "c": "z", "|||": "é"}
    assert read_dictionary(tmp_path / "dictionary.tsv") == words
    assert list(read_lines(tmp_path / "candidates.tsv")) == [
        "source\ttargets",
        "b\ty é",
        "source\ty z",
        "c\tz",
        "|||\té",
    ]


def test_the_most_frequent_word_is_taken_and_no_reserved_one(tmp_path: Path) -> None:
    """``<unk>`` of the text is no translation, however often it is aligned."""
    targets = ["rare", *["zebra"] * 3, *["often"] * 2, "a", *["<unk>"] * 4]
    pairs = [("word", target) for target in targets]
    rows = tables(tmp_path, [*pairs, ("<unk>", "the")], ["0-0"] * 12)
    assert rows == ["word\tzebra\t3\t11"]
    found = list(read_candidates(tmp_path / "candidates.tsv"))
    assert found == [("word", ["zebra", "often", "a", "rare"])]


def test_candidates_are_at_most_100(tmp_path: Path) -> None:
    words = [f"w{number:03}" for number in range(150)]
    tables(tmp_path, [("a", word) for word in words], ["0-0"] * 150)
    assert list(read_candidates(tmp_path / "candidates.tsv")) == [("a", words[:100])]
