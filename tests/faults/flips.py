"""Flipped bits in every kind of file that one step leaves for the next.

Each flip is followed by the step that reads the file: it must refuse the file, or make the very
same of it as of the sound one.
"""

import gzip
import json
import os
import random
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import torch

from convs2s.data.corpus import RawText, extract_corpus
from convs2s.data.word_counts import count_words
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.files.text import read_line_pairs, read_lines, write_lines
from convs2s.interop.checkpoint import read_checkpoint
from convs2s.model_file import load_model
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.training.data import TrainingData
from convs2s.training.run import train
from tests.faults import noted_files
from tests.support import tiny
from tests.support.damage import flipped
from tests.support.golden import DATA
from tests.support.local_files import FilesBelow

FLIPS = 1000


@dataclass(frozen=True)
class Kind:
    """A kind of file and the step that reads it.

    Attributes:
        path: the file.
        use: the step; returns what tells whether it has made the same.
    """

    path: Path
    use: Callable[[], object]


@dataclass
class Count:
    """What became of the flips in a kind of file."""

    noticed: int = 0
    harmless: int = 0
    silent: int = 0


def kinds(folder: Path) -> list[Kind]:
    """Make the files of a tiny task in a folder; return them by kind."""
    task = tiny.prepare(folder / "task")
    with tiny.whole_states():
        train(tiny.job(task, folder / "run/model.safetensors"))
    sides = task / "train.en", task / "train.fr"
    made = folder / "made"
    made.mkdir()
    packed = _packed(folder, sides)
    return [
        *(_download(archive, sides[1], made) for archive in packed),
        *_corpus(folder, sides, made),
        *_trained(task, folder / "run"),
        *_noted(task, folder / "run", folder / "noted"),
        _checkpoint(folder / "checkpoint.pt"),
    ]


def _packed(folder: Path, sides: tuple[Path, Path]) -> Iterator[str]:
    """Write one side as files that are downloaded; yield their references."""
    text = "\n".join(read_lines(sides[0])) + "\n"
    segments = "".join(
        f'<seg id="{n}">{line}</seg>\n' for n, line in enumerate(text.splitlines())
    )
    (folder / "a.sgm.gz").write_bytes(gzip.compress(segments.encode()))
    (folder / "a.gz").write_bytes(gzip.compress(text.encode()))
    with tarfile.open(folder / "a.tgz", "w:gz") as archive:
        archive.add(sides[0], "corpus/a.en")
    yield from (f"{folder}/a.sgm.gz", f"{folder}/a.gz", f"{folder}/a.tgz#corpus/a.en")


def _download(reference: str, other: Path, made: Path) -> Kind:
    outputs = made / "source", made / "target"

    def use() -> object:
        extract_corpus(
            RawText([(reference, str(other))], FilesBelow(made)), output=outputs
        )
        return sha256(outputs[0])

    return Kind(Path(reference.partition("#")[0]), use)


def _corpus(folder: Path, sides: tuple[Path, Path], made: Path) -> Iterator[Kind]:
    """Yield the files of the corpus in the forms that the workflow has them in."""
    for suffix in (".zst", ".gz", ".xz", ".bz2"):
        text = folder / f"text.en{suffix}"
        write_lines(text, read_lines(sides[0]))
        outputs, report = (made / "clean.en", made / "clean.fr"), made / "report.json"

        def clean(
            text: Path = text,
            outputs: tuple[Path, Path] = outputs,
            report: Path = report,
        ) -> object:
            tokenize_and_filter(
                read_line_pairs(text, sides[1]),
                sides=outputs,
                report=report,
                minimum=1,
                maximum=80,
                ratio=None,
            )
            return sha256(outputs[0])

        yield Kind(text, clean)
    words, table = folder / "words.tsv.zst", made / "vocabulary.tsv"
    count_words(text=sides[0], output=words)

    def build() -> object:
        tiny.build_word_vocabulary(words, table)
        return sha256(table)

    yield Kind(words, build)


def _trained(task: Path, run: Path) -> Iterator[Kind]:
    """Yield what a training reads and writes."""

    def open_task() -> object:
        data = TrainingData.read(task)
        data.check_checksums()
        return [pair[0].tolist() for pair in data.train], data.types, data.checksums

    for split in ("train", "valid"):
        yield Kind(task / f"dataset/{split}.arrow", open_task)
    (state,) = (run / "state").glob("*/last.safetensors")
    for path in (state, state.with_name("best.safetensors")):
        yield Kind(path, lambda path=path: _contents(path))  # type: ignore[misc]
    model = run / "model.safetensors"

    def load() -> object:
        network, description = load_model(model)
        return [one.tolist() for one in network.state_dict().values()], vars(
            description
        )

    yield Kind(model, load)


def _noted(task: Path, run: Path, folder: Path) -> Iterator[Kind]:
    """Yield what jobs note; a training reads two of them by itself."""
    for path in noted_files.make(task, run, folder):
        if path.is_relative_to(task):
            yield Kind(
                path,
                lambda: vars(TrainingData.read(task)) | {"train": None, "valid": None},
            )
        else:
            yield Kind(path, lambda path=path: noted_files.read(path))  # type: ignore[misc]


def _checkpoint(path: Path) -> Kind:
    """Return a checkpoint of fairseq's."""
    path.write_bytes((DATA / "fairseq_random/checkpoint_tiny_oldstyle.pt").read_bytes())

    def read() -> object:
        checkpoint = read_checkpoint(path)
        weights = {name: tensor.tolist() for name, tensor in checkpoint.weights.items()}
        return weights, checkpoint.arguments

    return Kind(path, read)


def _contents(path: Path) -> object:
    tensors, description = load_tensors(path)
    return {name: one.tolist() for name, one in tensors.items()}, description


def flip_all(found: Iterable[Kind], flips: int, number: int) -> dict[str, Count]:
    """Flip so many bits in all, as many in each kind of file; return what became of them."""
    listed = list(found)
    generator = random.Random(number)
    counts: dict[str, Count] = {}
    for kind in listed:
        count = counts.setdefault(kind.path.name, Count())
        content, sound = kind.path.read_bytes(), _printed(kind.use())
        for _ in range(-(-flips // len(listed))):
            kind.path.write_bytes(
                flipped(content, generator.randrange(8 * len(content)))
            )
            try:
                same = _printed(kind.use()) == sound
            except (UserError, SystemExit):  # a job that says it and ends
                count.noticed += 1
            else:
                count.harmless += same
                count.silent += not same
        kind.path.write_bytes(content)
    return counts


def _printed(value: object) -> str:
    return json.dumps(value, default=str, sort_keys=True)


def run(flips: int = FLIPS, number: int = 1) -> dict[str, Count]:
    """Flip bits in the files of a tiny task."""
    torch.set_num_threads(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        return flip_all(kinds(Path(folder)), flips, number)


def main() -> None:
    """Print a line for each kind; exit with 1 where a flip changed a result silently."""
    counts = run()
    for name, one in counts.items():
        print(
            f"{name:20} {one.noticed:4} noticed, {one.harmless:4} harmless, {one.silent} silent"
        )
    silent = sum(one.silent for one in counts.values())
    noticed = sum(one.noticed for one in counts.values())
    harmless = sum(one.harmless for one in counts.values())
    whole = noticed + harmless + silent
    print(
        f"flips: {whole} bits: {noticed} noticed, {harmless} harmless, {silent} silent"
    )
    sys.exit(1 if silent else 0)


if __name__ == "__main__":
    main()
