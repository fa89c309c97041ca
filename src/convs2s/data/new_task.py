"""Make a task of the pairs of sentences that a user has: its six files of text, and its YAML file.

A hash of the source sentence decides whether a pair is for training, validation or test. A pair
therefore stays in its split if others are added, and all translations of a sentence are in the same
split.
"""

import json
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from convs2s.data.corpus import LinePair
from convs2s.data.pair_files import Reading, TableHead, read_files
from convs2s.errors import UserError
from convs2s.files.atomic import (
    atomic_folder,
    refuse_existing,
    scratch_folder,
    sole_writer,
)
from convs2s.files.compressed import open_text
from convs2s.files.text import NO_MARK, read_lines, write_text


class Size(NamedTuple):
    """The model and the BPE merges of tasks with at most ``most_pairs`` training pairs."""

    most_pairs: float
    model: str
    merges: int


SIZES = (
    Size(5_000, "small_plateau", 2_000),
    Size(20_000, "small_plateau", 4_000),
    Size(200_000, "small_plateau", 8_000),
    Size(2_000_000, "larger", 16_000),
    Size(float("inf"), "wmt16_en_ro", 40_000),
)
"""Model and BPE merges by the number of training pairs; docs/own_language_pair.md has the table."""

LARGEST_SHARE = 1 / 20
"""Share of the pairs that are drawn for the test set, and for validation."""

MOST_DRAWN = 1_000
"""The share is halved until a split gets at most this number of pairs, on average."""

_SEED = b"convs2s new-task 1"
_HASHES = 1 << 64

# What ends a line or a cell for other programs, or is a control character.
_BLANKS = re.compile("[\x00-\x20\x7f\x85\u2028\u2029]+")
# Blanks, and the punctuation of ASCII and of the languages of Europe and East Asia.
_PUNCTUATION = re.compile(r"[\s!-/:-@\[-`{-~¡¿«»‐-›…、。「」，？！]+")
# The replacement character, which a program writes in place of what it could not read.
_UNREADABLE = "\ufffd"

# Two languages have the same alphabet if at least this share of their letters is common to both, in
# at most this number of pairs.
_PAIRS_FOR_ALPHABET = 10_000
_LEAST_COMMON = 0.5


@dataclass(frozen=True)
class NewTask:
    """What a task is made of."""

    name: str
    files: Sequence[str]
    """The files of all text, or of all but the text of ``valid`` and ``test``."""

    reading: Reading
    valid: Sequence[str] = ()
    """Files of validation text; empty: it is drawn from ``files``."""

    test: Sequence[str] = ()
    """Files of test text; empty: it is drawn from ``files``."""

    @property
    def folder(self) -> Path:
        """The folder of the task's text."""
        return Path("data", self.name)

    @property
    def file(self) -> Path:
        """The task's YAML file."""
        return Path("config/tasks", f"{self.name}.yaml")


@dataclass
class Counts:
    """How many pairs the files have, and what became of them."""

    read: int = 0
    empty: int = 0
    """Pairs that are left out because a side of them is empty."""

    unreadable: int = 0
    """Pairs that are left out because they have replacement characters."""

    repeated: int = 0
    """Pairs that are left out because an equal pair comes before them."""

    held_back: int = 0
    """Pairs that are left out because a side of them is in the validation or test text."""

    splits: dict[str, int] = field(default_factory=dict)
    """Number of pairs of train, valid and test."""


@dataclass(frozen=True)
class Made:
    """A task that was made."""

    counts: Counts
    first: LinePair
    """The first pair of the files, by which a user sees whether the sides are right."""

    table: TableHead | None
    """The table that has the first pair; None if a file of another kind has it."""

    size: Size
    joint: bool
    """Whether one set of BPE merges is learned from both languages."""


def new_task(wanted: NewTask) -> Made:
    """Write the text of a task below data/, and its YAML file below config/tasks/.

    Nothing is overwritten, and neither appears before all text was read. If a killed process has
    left the folder without the YAML file, the folder is made again. Memory grows by some tens of
    bytes with each pair.

    Raises:
        UserError: the folder or the YAML file exists already, a file cannot be read, or a split
            would be empty.
    """
    # This file marks a folder whose YAML file is not yet in its place.
    unfinished = wanted.folder / f"{wanted.file.name}.partial"
    with sole_writer(wanted.file):
        refuse_existing(wanted.file)
        if unfinished.is_file():
            # The unfinished folder is removed with the scratch folder.
            with scratch_folder(wanted.folder.parent) as scratch:
                wanted.folder.rename(scratch / "unfinished")
        with atomic_folder(wanted.folder) as folder:
            with scratch_folder(folder) as scratch:
                corpus = _Corpus(scratch / "pairs.zst", wanted)
                made = _Splits(corpus, folder, wanted).write()
            text = _task_file(wanted, made)
            write_text(folder / unfinished.name, text)
        write_text(wanted.file, text)
        unfinished.unlink()
    return made


def _clean(text: str) -> str:
    """Return a text as one line, without blanks at its ends."""
    return _BLANKS.sub(" ", text).strip(" ")


def _key(text: str) -> str:
    """Return a key that is the same for texts that differ in case, blanks and punctuation alone.

    A text of punctuation alone is its own key. Otherwise all such texts would have the same key,
    the empty text.
    """
    return _PUNCTUATION.sub("", text.casefold()) or text


def _hash(text: str) -> int:
    """Return a number from 0 to ``_HASHES`` - 1 that depends on the text alone."""
    digest = blake2b(text.encode(), digest_size=8, key=_SEED).digest()
    return int.from_bytes(digest, "big")


class _Corpus:
    """The clean pairs of all files, which are written into one temporary file.

    ``size`` is the number of different pairs, and ``first`` the first pair as it was read.
    """

    def __init__(self, path: Path, wanted: NewTask) -> None:
        """Read the files, and write their pairs to ``path``.

        Raises:
            UserError: a file cannot be read.
        """
        self.counts = Counts()
        self.first: LinePair = ("", "")
        self.table: TableHead | None = None
        self._path = path
        # Pairs are compared by their hashes, which take 8 bytes each.
        hashes = array("Q")
        letters: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        with open_text(path) as stream:
            for source, target in self._clean_pairs(wanted):
                stream.write(f"{source}\t{target}\n")
                hashes.append(_hash(f"{source}\t{target}"))
                if len(hashes) <= _PAIRS_FOR_ALPHABET:
                    letters[0].update(_letters(source))
                    letters[1].update(_letters(target))
        self.has_one_alphabet = _common_share(*letters) >= _LEAST_COMMON
        # Whether no equal pair comes before each pair.
        self._is_first = _first_of_each(np.frombuffer(hashes, dtype=np.uint64))
        self.size = int(self._is_first.sum())
        self.counts.repeated = len(hashes) - self.size

    def _clean_pairs(self, wanted: NewTask) -> Iterator[LinePair]:
        """Yield the pairs to keep, repeated ones as well, and count the others."""
        for pair in read_files(wanted.files, wanted.reading):
            if not self.counts.read:
                self.first = pair
                # If the first pair is from a table, its head has been added by now.
                self.table = next(iter(wanted.reading.tables), None)
            self.counts.read += 1
            source, target = map(_clean, pair)
            if not source or not target:
                self.counts.empty += 1
            elif _UNREADABLE in source + target:
                self.counts.unreadable += 1
            else:
                yield source, target

    def pairs(self) -> Iterator[LinePair]:
        """Yield each different pair once, in the order of the files."""
        lines = read_lines(self._path, mark=NO_MARK)
        for line, is_first in zip(lines, self._is_first, strict=True):
            if is_first:
                source, _, target = line.partition("\t")
                yield source, target


def _first_of_each(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return for each of N hashes whether no equal hash comes before it, (N,)."""
    is_first = np.zeros(len(hashes), dtype=np.bool_)
    _, places = np.unique(hashes, return_index=True)
    is_first[places] = True
    return is_first


def _letters(text: str) -> Iterator[str]:
    """Yield the letters of a text without case and accents."""
    for character in unicodedata.normalize("NFD", text.casefold()):
        if character.isalpha():
            yield character


def _common_share(source: Counter[str], target: Counter[str]) -> float:
    """Return the share of letters that two texts have in common, between 0 and 1.

    It is a share of the text with fewer letters.
    """
    fewer = min(source.total(), target.total())
    return (source & target).total() / fewer if fewer else 1.0


class _Splits:
    """The three splits of a corpus.

    The test and the validation text are drawn from the corpus, unless the user gives files of them.
    """

    def __init__(self, corpus: _Corpus, folder: Path, wanted: NewTask) -> None:
        self._corpus = corpus
        self._folder = folder
        self._wanted = wanted
        self._given = {"test": wanted.test, "valid": wanted.valid}
        self._share = LARGEST_SHARE
        while self._share * corpus.size > MOST_DRAWN:
            self._share /= 2

    def write(self) -> Made:
        """Write the files of all splits into the folder.

        Raises:
            UserError: one of them would be empty.
        """
        counts = self._corpus.counts
        held = self._held_pairs()
        keys: tuple[set[str], set[str]] = (set(), set())
        for pairs in held.values():
            for pair in pairs:
                for side, text in zip(keys, pair, strict=True):
                    side.add(_key(text))
        counts.splits["train"] = self._write("train", self._training(keys))
        for split, pairs in held.items():
            counts.splits[split] = self._write(split, pairs)
        drawn = sum(counts.splits[split] for split in held if not self._given[split])
        # All pairs of the corpus that are in no split.
        counts.held_back = self._corpus.size - counts.splits["train"] - drawn
        for split, count in counts.splits.items():
            if not count:
                raise UserError(
                    f"{' '.join(self._wanted.files)}: {self._corpus.size} different pairs leave "
                    f"none for {split}: give more pairs, or text of its own by --valid and --test"
                )
        size = next(one for one in SIZES if counts.splits["train"] <= one.most_pairs)
        corpus = self._corpus
        return Made(counts, corpus.first, corpus.table, size, corpus.has_one_alphabet)

    def _split_of(self, source: str) -> str:
        """Return the split of a source sentence.

        The sentences with the lowest hashes are for the test set, and those with the highest for
        validation. If the share is halved, pairs are added to the training text, and none leave it.
        """
        # Between 0 and 1.
        place = _hash(_key(source)) / _HASHES
        if place < self._share and not self._given["test"]:
            return "test"
        if place >= 1 - self._share and not self._given["valid"]:
            return "valid"
        return "train"

    def _held_pairs(self) -> dict[str, list[LinePair]]:
        """Return the pairs of the test and the validation text.

        No two pairs that are drawn have the same source or the same target, within one of the texts
        or across both.
        """
        held: dict[str, list[LinePair]] = {}
        # The keys of the sources and of the targets that are in one of the texts.
        source_keys: set[str] = set()
        target_keys: set[str] = set()
        for split, files in self._given.items():
            held[split] = []
            for pair in read_files(files, self._wanted.reading):
                source, target = map(_clean, pair)
                if source and target:
                    held[split].append((source, target))
                    source_keys.add(_key(source))
                    target_keys.add(_key(target))
        for_validation: list[LinePair] = []
        for source, target in self._corpus.pairs():
            split = self._split_of(source)
            if split == "train" or _key(source) in source_keys:
                continue
            source_keys.add(_key(source))
            if split == "valid":
                for_validation.append((source, target))
            elif _key(target) not in target_keys:
                target_keys.add(_key(target))
                held["test"].append((source, target))
        # The validation text is filled last, so that it takes no target from the test set.
        for source, target in for_validation:
            if _key(target) not in target_keys:
                target_keys.add(_key(target))
                held["valid"].append((source, target))
        return held

    def _training(self, held: tuple[set[str], set[str]]) -> Iterator[LinePair]:
        """Yield the training pairs: those of the split without any line of ``held``.

        ``held`` has the keys of the sources and of the targets in the test and validation text.
        """
        for source, target in self._corpus.pairs():
            is_held = _key(source) in held[0] or _key(target) in held[1]
            if self._split_of(source) == "train" and not is_held:
                yield source, target

    def _write(self, split: str, pairs: Iterable[LinePair]) -> int:
        """Write a file for each side of a split, and return the number of pairs."""
        languages = self._wanted.reading.languages
        count = 0
        with ExitStack() as stack:
            sides = [
                stack.enter_context(open_text(self._folder / f"{split}.{language}"))
                for language in (languages.source, languages.target)
            ]
            for pair in pairs:
                count += 1
                for stream, text in zip(sides, pair, strict=True):
                    stream.write(text + "\n")
        return count


def _task_file(wanted: NewTask, made: Made) -> str:
    """Return the content of the task's YAML file."""
    languages = wanted.reading.languages
    # A JSON string is also a YAML string. In quotation marks, the language code no is not read as
    # false.
    source = json.dumps(languages.source)
    target = json.dumps(languages.target)
    files = ", ".join(Path(file).name for file in wanted.files)
    description = json.dumps(
        f"{languages.source} to {languages.target}, {made.counts.splits['train']} pairs of {files}",
        ensure_ascii=False,
    )

    def pair(split: str) -> str:
        """Return the two files of a split, as YAML."""
        sides = [
            json.dumps(str(wanted.folder / f"{split}.{language}"))
            for language in (languages.source, languages.target)
        ]
        return f"[{{source: {sides[0]}, target: {sides[1]}}}]"

    joint = "true" if made.joint else "false"
    return (
        "# yaml-language-server: $schema=../../schemas/task.schema.json\n"
        "# Made by convs2s new-task (docs/own_language_pair.md). All keys: docs/configuration.md.\n"
        f"description: {description}\n"
        f"languages: {{source: {source}, target: {target}}}\n"
        "corpus:\n"
        f"  train: {pair('train')}\n"
        f"  valid: {pair('valid')}\n"
        "  tests:\n"
        f"    test: {pair('test')}\n"
        f"vocabulary: {{kind: bpe, merges: {made.size.merges}, joint: {joint}}}\n"
        f"headline: {{model: {made.size.model}, seeds: [1], tests: [test], decoding: beam5}}\n"
    )
