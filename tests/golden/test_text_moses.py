"""Normalization, tokenization and detokenization against Moses of May 2017 (Perl).

``moses/hand-written.LANGUAGE.jsonl`` holds hand-written hard lines with the original tools' output:
``input``, then each other text under the kinds of output that it is; a kind that is not named gave
the input back. ``detok`` is detokenizer.perl on the output of ``tok-a``.
"""

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from convs2s.text.normalize import Normalizer, remove_non_printing
from convs2s.text.preparation import Preparation
from convs2s.text.tokenize import Detokenizer, Tokenizer

LANGUAGES = ["en", "de", "fr", "ro"]
KINDS = ["norm", "rmnp", "tok", "tok-a", "tok-a-noesc", "fairseq-train", "fairseq-test", "detok"]

BLANK = "Perl prints a line of blanks as it is; here it has no word, and the filter drops it"
CHINESE = "sacremoses' table of letters lacks the Chinese and Korean ones, so that each is a word"
VIRAMA = "sacremoses takes the signs that join Indic letters for letters; Perl's table does not"
UNEQUAL = {
    "DOTMULTI DOTDOTMULTI.": "the text holds Moses' own marker for several full stops",
    "日本語のテキスト。「引用」、（括弧）": CHINESE,
    "中文，测试。！？": CHINESE,
    "한국어 텍스트.": CHINESE,
    "हिन्दी में नमस्ते।": VIRAMA,
    "தமிழ் மொழி": VIRAMA,
    "ℕ ℝ 𝒜𝓑 Ａｂｃ１２３": "sacremoses' table of letters lacks mathematical ones beyond U+FFFF",
    "\r": BLANK,
    "   ": BLANK,
    "\t": BLANK,
    "\xa0": BLANK,
    "\u3000": BLANK,
    "\x01": BLANK + " (removal of non-printing characters left a space of it)",
}
"""The hand-written lines on which ours may differ, and why."""


def ours(kind: str, language: str) -> Callable[[str], str]:
    if kind == "norm":
        return Normalizer(language)
    if kind == "rmnp":
        return remove_non_printing
    if kind == "detok":
        return Detokenizer(language)
    if kind.startswith("fairseq-"):
        return Preparation(kind.replace("fairseq-", "moses_"), language).prepare
    if kind == "wmt16":
        return Preparation("wmt16_plain", language).prepare
    return Tokenizer(language, aggressive=kind != "tok", escape=kind != "tok-a-noesc")


def hand_written(root: Path, language: str) -> Iterator[dict[str, str]]:
    """Yield the input and every kind of output of each hand-written line."""
    path = root / "tests" / "golden" / "moses" / f"hand-written.{language}.jsonl"
    for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        outputs = dict.fromkeys(KINDS, record["input"])
        for kinds, text in record.items():
            outputs.update(dict.fromkeys(kinds.split(), text))
        yield outputs


def original(shared: Path, name: str, language: str) -> list[str]:
    path = shared / "golden" / "tok" / f"{name}.{language}"
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    ("kind", "language"), [*product(KINDS, LANGUAGES), ("wmt16", "en"), ("wmt16", "ro")]
)
def test_real_text_is_equal(shared: Path, kind: str, language: str) -> None:
    section = next(s for s in original(shared, "input", f"{language}.sections") if "nasty" in s)
    real = int(section.split("-")[0]) - 1  # the hand-written lines come last
    given = "tok-a.2017" if kind == "detok" else "input"
    wanted = "detok-of-tok-a.2017" if kind == "detok" else f"{kind}.2017"
    output = list(map(ours(kind, language), original(shared, given, language)[:real]))
    assert real >= 650
    assert output == original(shared, wanted, language)[:real]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_hand_written_lines_differ_only_where_known(root: Path, kind: str, language: str) -> None:
    process = ours(kind, language)
    given = "tok-a" if kind == "detok" else "input"
    lines = list(hand_written(root, language))
    unequal = {line["input"] for line in lines if process(line[given]) != line[kind]}
    assert len(lines) >= 190
    assert unequal <= set(UNEQUAL)
    assert len(unequal) <= {"norm": 0, "rmnp": 0, "detok": 5}.get(kind, 12)


@pytest.mark.parametrize("language", LANGUAGES)
def test_hand_written_lines_are_the_golden_ones(root: Path, shared: Path, language: str) -> None:
    names = {kind: f"{kind}.2017" for kind in KINDS}
    names |= {"input": "input", "detok": "detok-of-tok-a.2017"}
    lines = list(hand_written(root, language))
    for kind, name in names.items():
        assert [line[kind] for line in lines] == original(shared, name, language)[-len(lines) :]
