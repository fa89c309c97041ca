"""BPE against the output of subword-nmt's own commands."""

from collections import Counter
from pathlib import Path

import pytest

from convs2s.data.dataset import learn_bpe
from convs2s.data.word_counts import added_counts, count_words
from convs2s.files.text import write_lines
from convs2s.text.bpe import Bpe, count_tokens, join
from tests.support.golden import DATA, golden_lines

FOLDER = DATA / "bpe"


def codes_of(name: str) -> str:
    return (FOLDER / name).read_bytes().decode("utf-8")


CODES = codes_of("codes.2000")


def vocabulary(language: str) -> Counter[str]:
    """Return how often each token occurs in the training text, as subword-nmt counted."""
    pairs = (line.split(" ") for line in golden_lines(FOLDER, f"vocab.{language}"))
    return Counter({token: int(count) for token, count in pairs})


def splitter(option: str, language: str) -> Bpe:
    """Return what splits as apply-bpe does with an option of the names of its output."""
    if option == "vt50":
        counts = vocabulary(language)
        return Bpe(CODES, {token for token, count in counts.items() if count >= 50})
    if option == "gloss":
        return Bpe(CODES, glossaries=["&apos;", "&quot;", "[A-Z][a-z]+"])
    if option == "merges500":
        return Bpe("".join(CODES.splitlines(keepends=True)[:501]))
    return Bpe(codes_of("codes.fr.500") if option == "fr500" else CODES)


def test_split_is_apply_bpe_and_join_undoes_it() -> None:
    names = {path.name.removesuffix(".gz") for path in FOLDER.glob("out.*")}
    assert len(names) == 12
    for name in names:
        _, part, *option, language = name.split(".")
        bpe = splitter("".join(option), language)
        given = golden_lines(FOLDER, f"in.{part}.{language}")
        wanted = golden_lines(FOLDER, name)
        found = [bpe.split(line) for line in given]
        # subword-nmt keeps the blanks at both ends of a line.
        assert found == [line.strip(" \r") for line in wanted], name
        assert [join(line) for line in wanted] == given


@pytest.mark.parametrize(
    ("languages", "merges", "codes"),
    [(("en", "fr"), 2000, "codes.2000"), (("fr",), 500, "codes.fr.500")],
)
def test_codes_are_those_learned_by_subword_nmt(
    tmp_path: Path, languages: tuple[str, ...], merges: int, codes: str
) -> None:
    """From tables of how often each word occurs, one for each half of a text."""
    tables = []
    for language in languages:
        lines = golden_lines(FOLDER, f"train.tok.{language}")
        for number, part in enumerate((lines[:6000], lines[6000:])):
            text = tmp_path / f"{language}{number}"
            write_lines(text, part)
            tables.append(text.with_suffix(".tsv"))
            count_words(text=text, output=tables[-1])
    learn_bpe(words=tables, output=tmp_path / "codes", merges=merges)
    assert (tmp_path / "codes").read_text("utf-8") == codes_of(codes)
    counted = count_tokens(added_counts(tables[-2:]), Bpe(CODES))
    assert counted == vocabulary("fr")
