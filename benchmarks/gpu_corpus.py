"""What the GPU's benchmark learns to translate: fairseq's Multi30k input, or the demo's corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.demo.corpus import read_demo_corpus
from convs2s.files.text import read_lines, write_lines
from convs2s.text.bpe import join
from convs2s.text.preparation import Preparation
from fairseq_task import prepare_fairseq_task
from workloads import fairseq_folder


@dataclass(frozen=True)
class Corpus:
    """A task, and what to translate with its model.

    Attributes:
        name: of the text, in words.
        task: the prepared folder.
        sources: the test set's lines, as tokens.
        references: as text.
        restore: from the tokens of a translation to text.
    """

    name: str
    task: Path
    sources: list[str]
    references: list[str]
    restore: Callable[[str], str]


def prepare_corpus(folder: Path, tiny: bool) -> Corpus:
    """Prepare the text in a folder; ``tiny``: some lines of it."""
    most, tested = (50, 2) if tiny else (None, None)
    shared = fairseq_folder()
    if not shared.is_dir():
        return _demo(folder, most, tested)
    german = Preparation("moses_test", "de")
    return Corpus(
        "fairseq's Multi30k input, test_2016_flickr",
        prepare_fairseq_task(shared / "bpe", folder, most),
        list(read_lines(shared / "src.bpe.en"))[:tested],
        list(read_lines(shared / "ref.raw.de"))[:tested],
        lambda tokens: german.restore(join(tokens)),
    )


def _demo(folder: Path, most: int | None, tested: int | None) -> Corpus:
    """Return the demo's corpus, whose tokens are what stands between blanks."""
    splits = read_demo_corpus()
    text = folder / "text"
    for split, name in (("train", "train"), ("valid", "val")):
        _write(text / f"{name}.en", [english for english, _ in splits[split]])
        # Named as fairseq's input is; it is French.
        _write(text / f"{name}.de", [french for _, french in splits[split]])
    english, french = zip(*splits["test"][:tested], strict=True)
    task = prepare_fairseq_task(text, folder, most)
    return Corpus("the demo's corpus", task, list(english), list(french), str)


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, lines)
