"""Count what a task's token stores contain, and what a reader of its scores should know of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.data.counts import counts_table
from convs2s.data.dataset import StoreDescription, line_encoder, read_description
from convs2s.data.store import SIDES
from convs2s.data.vocabulary import UNKNOWN
from convs2s.files.text import NO_MARK, read_lines, write_json, write_lines
from convs2s.scoring.data_counts import (
    DataCounts,
    SideCounts,
    TokenCount,
    read_overlap,
    unknown_shares,
)
from convs2s.scoring.text_table import aligned, underlined
from convs2s.text.preparation import Preparation
from convs2s.text.truecase import Truecaser, read_truecaser

_NAMES = {"train": "training", "valid": "validation"}
"""Split -> its name in the table. A test set has its own name there."""


@dataclass(frozen=True)
class Encoding:
    """The files by which a task's words become tokens."""

    # The codes of the source and the target, or one file of joint codes, or nothing if words are
    # kept whole.
    bpe_codes: Sequence[Path]
    vocabularies: Sequence[Path]  # of the source and the target
    truecasers: Sequence[Path]  # of the source and the target, or nothing

    def count_tokens(
        self,
        text: tuple[Path, Path],
        description: StoreDescription,
    ) -> SideCounts:
        """Count the tokens of raw test text, and those that are unknown.

        ``text`` is its source and its target file. ``description`` may be of any token store of the
        task.
        """
        # Of joint codes, the only file is both the first and the last.
        codes = (
            (self.bpe_codes[0], self.bpe_codes[-1]) if self.bpe_codes else (None, None)
        )
        truecasers = self.truecasers or (None, None)
        sides = zip(SIDES, text, codes, self.vocabularies, truecasers, strict=True)
        counts = {}
        for side, file, code, vocabulary, truecaser in sides:
            language = getattr(description.languages, side)
            prepare = Preparation(description.preparation, language).prepare
            lines = map(prepare, read_lines(file, mark=NO_MARK))
            if truecaser is not None:
                lines = map(Truecaser(read_truecaser(truecaser)), lines)
            encode = line_encoder(code, vocabulary, description.vocabulary)
            tokens = 0
            unknown = 0
            for indices in map(encode, lines):
                tokens += len(indices)
                unknown += indices.count(UNKNOWN)
            counts[side] = TokenCount(tokens, unknown)
        return counts


def count_dataset(
    *,
    train: Path,
    valid: Path,
    tests: Mapping[str, tuple[Path, Path]],
    encoding: Encoding,
    overlap: Path,
    table: Path,
    counts: Path,
    most_tokens: int | None,
) -> None:
    """Write how many pairs and unknown tokens there are, and how many test lines were trained on.

    They are written as a table for people and as JSON (`DataCounts`). The shares of unknown tokens,
    and what is unusual, are printed.

    Args:
        train: The description of the training store.
        valid: The description of the validation store.
        tests: Test set -> the source and the target file of its raw text.
        encoding: The files by which the words of test text become tokens.
        overlap: What `count_overlap` wrote of the task's text.
        table: The table to write.
        counts: The JSON file to write.
        most_tokens: The maximum number of tokens on a side; with None there is none, and the table
            has no row for it.
    """
    training = read_description(train)
    validation = read_description(valid)
    token_counts = {
        "train": training.token_counts,
        "valid": validation.token_counts,
    }
    for name, text in tests.items():
        token_counts[name] = encoding.count_tokens(text, training)
    stores = {
        "dataset/train.arrow": training.sha256,
        "dataset/valid.arrow": validation.sha256,
    }
    data_counts = DataCounts(stores, token_counts, read_overlap(overlap))
    lines = _pairs_table(training, validation, most_tokens)
    lines += _unknown_table(data_counts)
    lines += _overlap_table(data_counts)
    write_lines(table, lines)
    write_json(counts, data_counts)
    for split, counted in token_counts.items():
        print(f"{split}: {unknown_shares(counted)}")
    for split in token_counts:
        for note in data_counts.notes(split):
            print(f"warning: {split}: {note}")


def _pairs_table(
    training: StoreDescription,
    validation: StoreDescription,
    most_tokens: int | None,
) -> list[str]:
    """Return the table of the pairs in the stores, and of the pairs that were too long."""
    # The pairs that the filter of the corpus kept, whose limits are numbers of words.
    all_training = training.pairs + training.dropped
    all_validation = validation.pairs + validation.dropped
    rows = [("kept by words", all_training, all_validation)]
    if most_tokens is not None:
        too_long = f"dropped: over {most_tokens} tokens"
        rows.append((too_long, training.dropped, validation.dropped))
    rows.append(("kept", training.pairs, validation.pairs))
    title = f"Token pairs of {training.task}"
    return counts_table(title, training.stand_in, rows)


def _unknown_table(data_counts: DataCounts) -> list[str]:
    """Return the table of the shares of unknown tokens."""
    rows = []
    for split, counts in data_counts.unknown.items():
        # str of a TokenCount is the share of unknown tokens.
        rows.append([_NAMES.get(split, split), *map(str, counts.values())])
    title = underlined("Tokens that are not in the vocabulary")
    return ["", *title, "", *aligned(["", "source", "target"], rows)]


def _overlap_table(data_counts: DataCounts) -> list[str]:
    """Return the table of the validation and test pairs that share lines with training pairs."""
    overlap = data_counts.overlap
    rows = []
    for split, shared in overlap.sets.items():
        figures = (shared.pairs, shared.both, shared.source, shared.target)
        rows.append([_NAMES.get(split, split), *(f"{figure:,}" for figure in figures)])
    title = underlined("Validation and test pairs that are also in the training text")
    head = ["", "pairs", "both sides", "source", "target"]
    last = f"Training pairs with one of these lines: {overlap.training:,}"
    return ["", *title, "", *aligned(head, rows), "", last]
