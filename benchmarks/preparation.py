"""How fast is training text prepared on one core, and does the memory stay flat?

Runs the functions that the rules run, on English-French news: normalize, tokenize and
clean in one pass from file to file (``tokenize_and_filter``), count words (``count_words``), split
into BPE tokens and write the token store (``binarize``). Medians of five, of processor time, as
each step is one process with one thread; a line is one side of a pair. compare.py has the rates of
sacremoses and subword-nmt. Then every step runs once on a small and on a large corpus, each time in
a process of its own, for its peak of memory. Prints each figure and, last, one JSON object.

The news are those of CONVS2S_SHARED (default ../shared), without it the demo corpus. They repeat
with a third of the words that occur once spelt anew each time, so that new types keep coming.

    python benchmarks/preparation.py [rates] [memory]
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from convs2s.config.corpus import CleanLimits, Languages, VocabularySettings
from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import binarize, build_vocabulary, learn_bpe
from convs2s.data.word_counts import count_words
from convs2s.demo.corpus import write_demo_corpus
from convs2s.files.compressed import open_text
from convs2s.files.text import NO_MARK, read_line_pairs
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import Preparation
from sample import memory_of

LANGUAGES = ("en", "fr")
NEWS = (
    "dev/newstest2012.{}",
    "dev/newstest2013.{}",
    "plain/newstest2014-fren.{}.gz",
    "train-samples/news-commentary-5k.{}",
)
RUNS = 5
CLEAN = CleanLimits(minimum=1, maximum=175, ratio=1.5)
VOCABULARY = VocabularySettings(merges=8000)
METADATA = DatasetMetadata(
    task="news",
    languages=Languages(source=LANGUAGES[0], target=LANGUAGES[1]),
    preparation="moses_test",
    vocabulary=VOCABULARY,
)
RESPELT = 1 / 3
LETTERS = ("aeiouy", "bcdfghjklmnpqrstvwxz")

Pair = tuple[str, str]


class Files:
    """The files of a corpus, from raw text to token store, below a folder."""

    def __init__(self, folder: Path, models: Path) -> None:
        """Take the folder of the corpus' files, and that of codes and vocabularies."""
        self.raw = _sides(folder, "raw", "zst")
        self.clean = _sides(folder, "clean", "zst")
        self.report = folder / "report.json"
        self.words = _sides(folder, "words", "tsv.zst")
        self.codes = models / "codes"
        self.vocabularies = _sides(models, "types", "tsv")
        self._folder = folder

    def tokenize_and_filter(self) -> None:
        """Normalize, tokenize and clean both sides."""
        english, french = (
            Preparation("moses_train", language) for language in LANGUAGES
        )
        tokenize_and_filter(
            read_line_pairs(*self.raw, mark=NO_MARK),
            sides=self.clean,
            report=self.report,
            prepare=(english.prepare, french.prepare),
            **CLEAN.model_dump(exclude={"tokens"}),
        )

    def count_words(self) -> None:
        """Count the words of both sides."""
        for text, table in zip(self.clean, self.words, strict=True):
            count_words(text=text, output=table)

    def learn(self) -> None:
        """Go as far as ``binarize`` and learn what it needs."""
        self.tokenize_and_filter()
        self.count_words()
        learn_bpe(words=self.words, output=self.codes, merges=VOCABULARY.merges)
        kept = VOCABULARY.model_dump(
            include={"threshold", "glossaries", "minimum_count"}
        )
        for words, types in zip(self.words, self.vocabularies, strict=True):
            build_vocabulary(
                words=words, bpe_codes=self.codes, output=types, size=None, **kept
            )

    def binarize(self) -> None:
        """Split both sides into tokens and write the token store."""
        binarize(
            text=self.clean,
            bpe_codes=[self.codes],
            vocabularies=self.vocabularies,
            store=self._folder / "train.arrow",
            description=self._folder / "train.json",
            metadata=METADATA,
        )


STEPS = ("tokenize_and_filter", "count_words", "binarize")


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(
        description="Rate and memory of the preparation of text."
    )
    parser.add_argument(
        "parts", nargs="*", choices=[[], "rates", "memory"], help="default: both"
    )
    parser.add_argument(
        "--pairs", type=int, default=28_000, help="for rates; default: %(default)s"
    )
    parser.add_argument(
        "--small", type=int, default=100_000, help="pairs; default: %(default)s"
    )
    parser.add_argument(
        "--large", type=int, default=1_000_000, help="pairs; default: %(default)s"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = news(folder)
        files = Files(folder, folder)
        write_varied(pairs, arguments.pairs, files.raw)
        files.learn()
        figures: dict[str, Any] = {}
        if arguments.parts != ["memory"]:
            figures |= rates(arguments.pairs, files)
        if arguments.parts != ["rates"]:
            figures |= memory(pairs, (arguments.small, arguments.large), folder)
    print(json.dumps(figures))


def news(folder: Path) -> list[Pair]:
    """Return the pairs that all corpora are made of."""
    shared = Path(os.environ.get("CONVS2S_SHARED", "../shared")) / "data" / "wmt"
    if shared.is_dir():
        names = [
            [shared / name.format(language) for language in LANGUAGES] for name in NEWS
        ]
        pairs = [
            pair
            for english, french in names
            for pair in read_line_pairs(english, french)
        ]
    else:
        write_demo_corpus(folder)
        pairs = list(read_line_pairs(folder / "train.en", folder / "train.fr"))
    words = [
        sum(len(line.split()) for line in side) for side in zip(*pairs, strict=True)
    ]
    origin = (
        "news" if shared.is_dir() else "demo corpus, as CONVS2S_SHARED is not there"
    )
    per_line = " and ".join(f"{count / len(pairs):.1f}" for count in words)
    print(f"{origin}: {len(pairs)} pairs, {per_line} words a line")
    return pairs


def rates(count: int, files: Files) -> dict[str, int]:
    """Return the lines per second of each step on one core."""
    seconds = {step: median_seconds(getattr(files, step)) for step in STEPS}
    without = seconds["tokenize_and_filter"]
    spent = {
        "lines_per_second_without_bpe": without,
        "lines_per_second_with_bpe": without + seconds["binarize"],
        "lines_per_second_counting_words": seconds["count_words"],
        "lines_per_second_bpe_alone": seconds["binarize"],
    }
    figures = {name: round(2 * count / value) for name, value in spent.items()}
    for name, value in figures.items():
        print(f"{name}: {value:,}", flush=True)
    return figures


def memory(pairs: list[Pair], sizes: tuple[int, int], folder: Path) -> dict[str, Any]:
    """Return each step's peak of memory on both corpora, and the growth."""
    peaks: dict[str, list[float]] = {step: [] for step in STEPS}
    for count in sizes:
        corpus = folder / str(count)
        corpus.mkdir()
        write_varied(pairs, count, Files(corpus, folder).raw)
        for step in STEPS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                peaks[step].append(pool.apply(peak_mebibytes, (corpus, folder, step)))
            print(f"{count} pairs, {step}: peak {peaks[step][-1]:.0f} MiB", flush=True)
    growth = {step: round(most / least - 1, 3) for step, (least, most) in peaks.items()}
    return {"pairs": sizes, "peak_mebibytes": peaks, "memory_growth": growth}


def peak_mebibytes(corpus: Path, models: Path, step: str) -> float:
    """Run a step in this process; return the most memory that it ever held."""
    getattr(Files(corpus, models), step)()
    return round(memory_of("self", "VmHWM") / 2**20, 1)


def write_varied(pairs: list[Pair], count: int, outputs: tuple[Path, Path]) -> None:
    """Write so many pairs: the given ones in their order, then shuffled and varied copies."""
    with open_text(outputs[0]) as source, open_text(outputs[1]) as target:
        for pair in islice(varied(pairs), count):
            source.write(pair[0] + "\n")
            target.write(pair[1] + "\n")


def varied(pairs: list[Pair]) -> Iterator[Pair]:
    """Yield the pairs in their order, then for ever shuffled and respelt copies."""
    yield from pairs
    counts = Counter(
        word for pair in pairs for line in pair for word in line.split(" ")
    )
    rare = {word for word, times in counts.items() if times == 1 and word.isalpha()}
    generator = random.Random(1)
    while True:
        table = _respelling(generator)
        for pair in generator.sample(pairs, len(pairs)):
            source, target = (
                " ".join(
                    word.translate(table)
                    if word in rare and generator.random() < RESPELT
                    else word
                    for word in line.split(" ")
                )
                for line in pair
            )
            yield source, target


def _respelling(generator: random.Random) -> dict[int, int]:
    """Return a table that replaces vowels by vowels and consonants by consonants."""
    table: dict[int, int] = {}
    for letters in LETTERS:
        shuffled = "".join(generator.sample(letters, len(letters)))
        table |= str.maketrans(letters + letters.upper(), shuffled + shuffled.upper())
    return table


def _sides(folder: Path, name: str, end: str) -> tuple[Path, Path]:
    english, french = (folder / f"{name}.{language}.{end}" for language in LANGUAGES)
    return english, french


def median_seconds(work: Callable[[], None]) -> float:
    """Return the median processor time of ``RUNS`` calls."""
    seconds = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
