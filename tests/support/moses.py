"""Our counterparts of Moses' tools, and its output of real text."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from convs2s.text.moses import _CONTROLS, Detokenizer, Tokenizer
from convs2s.text.normalize import Normalizer, remove_non_printing
from convs2s.text.preparation import Preparation
from tests.support.golden import golden_lines

LANGUAGES = ["en", "de", "fr", "ro"]
KINDS = [
    "norm",
    "rmnp",
    "tok",
    "tok-a",
    "tok-a-noesc",
    "fairseq-train",
    "fairseq-test",
    "detok",
]


def our_tool(kind: str, language: str) -> Callable[[str], str]:
    """Return what does the work of a kind of output."""
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
    tokenizer = Tokenizer(language, aggressive=kind != "tok")
    if kind == "tok-a-noesc":
        return partial(unescaped, tokenizer)
    return tokenizer


def unescaped(tokenizer: Tokenizer, line: str) -> str:
    """Tokenize a line as ``tokenizer.perl -a -no-escape`` does."""
    words: str = tokenizer.tokenize(
        _CONTROLS.sub("", line),
        aggressive_dash_splits=True,
        escape=False,
        return_str=True,
    )
    return words


def assert_real_text_is_equal(
    folder: Path, kind: str, language: str, least: int
) -> None:
    """Compare the lines before the hand-written ones, which come last."""
    sections = golden_lines(folder, f"input.{language}.sections")
    nasty = next(section for section in sections if "nasty" in section)
    real = int(nasty.split("-")[0]) - 1
    given = "tok-a.2017" if kind == "detok" else "input"
    wanted = "detok-of-tok-a.2017" if kind == "detok" else f"{kind}.2017"
    tool = our_tool(kind, language)
    output = [tool(line) for line in golden_lines(folder, f"{given}.{language}")[:real]]
    assert real >= least
    assert output == golden_lines(folder, f"{wanted}.{language}")[:real]
