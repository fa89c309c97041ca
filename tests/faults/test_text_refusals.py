"""Wrong codes, links and preparations: what is said of them."""

import sys
from pathlib import Path

import pytest

from convs2s.config.extensions import export_extensions
from convs2s.files.text import write_lines
from convs2s.text.align import align_words
from convs2s.text.bpe import Bpe, Glossaries, learn_codes
from convs2s.text.dictionary import build_dictionary
from convs2s.text.fast_align import AlignmentState
from convs2s.text.preparation import Preparation
from tests.support.archives import flipped
from tests.support.refusals import refusal, refuses, rows, says

CODES = learn_codes([("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)], 10)


def test_codes() -> None:
    refuses("no word ... corpus/counts.txt ... `clean`", learn_codes, [], 10)
    refuses("no word", learn_codes, [("<unk>", 3)], 10)
    refuses("lower the vocabulary's threshold", Bpe, CODES, set())
    refuses("line 3 ... two tokens ... 'x'", Bpe, "#version: 0.2\na b\nx\n")
    refuses("glossaries: '(' ... missing )", Bpe, CODES, glossaries=["("])
    slow = Bpe(CODES, glossaries=[r"(?:\w|\w\w)+[^\w]"])
    says(refusal(slow.split, "l" * 60), "glossaries: ", "more than 1 s ... 'llll")


def test_a_glossary_that_takes_all_memory_is_never_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("convs2s.text.bpe.regex.compile", None)
    for pattern in (
        "a{1000000000}",
        "(?:(?:a{999}){999}){999,}",
        "(?x)a{ 1 000 000 000}",
        "(?x)a{1# }\n000000000}",
    ):
        says(
            refusal(Glossaries, [pattern]),
            "glossaries: ",
            "too large ... smaller counts",
        )


LINKS = r"""
0-0 => 2
0-0\n1-0 => 2
0-1 => 1
0-0\n0-0\n0-0 => 3
"""


def test_links_of_another_text(tmp_path: Path) -> None:
    text = tmp_path / "text"
    links = tmp_path / "links"
    write_lines(text, ["a", "a"])
    made = {"dictionary": tmp_path / "d", "candidates": tmp_path / "c"}
    for found, line in rows(LINKS):
        links.write_text(f"{found}\n")
        message = refusal(
            build_dictionary, source=text, target=text, links=links, **made
        )
        says(message, f"links:{line}: the links are not those of this text: align the ")


def test_an_aligner_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    text = tmp_path / "en"
    links = tmp_path / "links"
    write_lines(text, ["the"])
    files = {"source": text, "target": text, "links": links}
    message = refusal(align_words, **files, pairs=None, aligner="eflomal")
    says(message, "alignment.aligner: ", "pip install 'convs2s[eflomal]'", "fast_align")
    assert not links.exists()


def test_no_damaged_state_of_an_alignment_is_ever_read(tmp_path: Path) -> None:
    state = AlignmentState(tmp_path / "state", [b"one", b"two"])
    state.keep(iterations=3, probability=[0.0, 0.25, 0.5])
    (path,) = (tmp_path / "state").iterdir()
    whole = path.read_bytes()
    damaged = [flipped(whole, 8 * place + place % 8) for place in range(len(whole))]
    refused = 0
    for content in (*damaged, *(whole[:size] for size in (0, 1, 100, 400)), whole):
        path.write_bytes(content)
        kept = state.kept()
        refused += not kept
        assert not kept or kept["iterations"] == 3
        assert not kept or kept["probability"].tolist() == [0.0, 0.25, 0.5]
    assert kept
    assert refused > len(whole) // 2, "most of it counts"
    for parts in ([b"one", b"tw"], [b"two", b"one"], [b"onetwo"]):
        assert AlignmentState(tmp_path / "state", parts).kept() == {}


OWN = """
class Own:
    def __init__(self, language): pass
    def prepare(self, line): return {made}
    restore = prepare
PREPARATIONS = {{"own": Own, "nothing": lambda language: None}}
"""
MADE = r"""
'a\\n' => preparation own. ... a line of text
None => preparation own. ... a line of text
1 / 0 => own.py:4: ... ZeroDivisionError: division by zero
"""


def test_a_preparation_of_the_users_own(tmp_path: Path) -> None:
    for made, words in rows(MADE):
        (tmp_path / "own.py").write_text(OWN.format(made=made))
        export_extensions(["own.py"], tmp_path)
        own = Preparation("own", "en")
        refuses(words, own.prepare, "a")
        refuses(words, own.restore, "a")
    message = refusal(Preparation, "nothing", "en")
    says(message, "preparation nothing: AttributeError: 'NoneType' object")
