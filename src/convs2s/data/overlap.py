"""Find lines of validation and test text in training text.

Lines are prepared like training text and compared as words, so that the same sentence with other
quotes or blanks is found, too. Only the digests of the validation and test text are in memory, and
one pair of the training text at a time.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from convs2s.files.text import NO_MARK, read_line_pairs, write_json
from convs2s.scoring.data_counts import Overlap, TrainingOverlap
from convs2s.text.corpus_filter import Prepare, tidy

_DIGEST_BYTES = 8
"""Among 36 million training pairs and 100,000 other lines, two different lines have the same digest
with a probability below one in a million."""


def files_by_set(paths: Iterable[str]) -> dict[str, tuple[Path, Path]]:
    """Return the source and the target file of each set, by its name.

    ``paths`` are the files ``SET.source.zst`` and ``SET.target.zst`` of each set, in this order.
    """
    files = list(map(Path, paths))
    pairs = zip(files[::2], files[1::2], strict=True)
    return {source.name.partition(".")[0]: (source, target) for source, target in pairs}


def line_digest(line: str) -> bytes:
    """Return the digest by which lines are compared."""
    return hashlib.blake2b(line.encode(), digest_size=_DIGEST_BYTES).digest()


class EvaluationText:
    """The lines of validation and test sets, as digests of their words.

    ``sets`` maps the name of each set to the digests of its pairs, (source, target).
    """

    def __init__(
        self,
        files: Mapping[str, tuple[Path, Path]],
        prepare: tuple[Prepare, Prepare],
    ) -> None:
        """Read the raw text of each set; ``prepare`` are the functions for training text.

        Raises:
            UserError: a file cannot be read, or the sides of a set differ in number of lines.
        """
        prepare_source, prepare_target = prepare
        self.sets: dict[str, list[tuple[bytes, bytes]]] = {}
        self.sources: set[bytes] = set()
        self.targets: set[bytes] = set()
        for name, sides in files.items():
            pairs = self.sets[name] = []
            for source_line, target_line in read_line_pairs(*sides, mark=NO_MARK):
                source = line_digest(tidy(prepare_source(source_line)))
                target = line_digest(tidy(prepare_target(target_line)))
                pairs.append((source, target))
                self.sources.add(source)
                self.targets.add(target)

    def shares_line(self, source: str, target: str) -> bool:
        """Return whether the source or the target of a training pair is a line of a set."""
        # Without sets, no digests need be computed.
        if not self.sets:
            return False
        return (
            line_digest(source) in self.sources or line_digest(target) in self.targets
        )


def count_overlap(
    *,
    train: tuple[Path, Path],
    evaluation: EvaluationText,
    output: Path,
) -> TrainingOverlap:
    """Count the lines that training text shares with validation and test text.

    Args:
        train: The source and the target file of the training text, tokenized and filtered.
        evaluation: The validation and test text.
        output: The JSON file to write, with the fields of the returned `TrainingOverlap`.
    """
    # The lines of validation and test text that occur in the training text, and the training pairs
    # of two such lines.
    found_sources: set[bytes] = set()
    found_targets: set[bytes] = set()
    found_pairs: set[tuple[bytes, bytes]] = set()
    # Number of training pairs with such a line.
    training = 0
    for source_line, target_line in read_line_pairs(*train, mark=NO_MARK):
        source = line_digest(source_line)
        target = line_digest(target_line)
        has_source = source in evaluation.sources
        has_target = target in evaluation.targets
        training += has_source or has_target
        if has_source:
            found_sources.add(source)
        if has_target:
            found_targets.add(target)
        if has_source and has_target:
            found_pairs.add((source, target))
    sets = {}
    for name, pairs in evaluation.sets.items():
        sets[name] = Overlap(
            pairs=len(pairs),
            both=sum(pair in found_pairs for pair in pairs),
            source=sum(source in found_sources for source, _ in pairs),
            target=sum(target in found_targets for _, target in pairs),
        )
    overlap = TrainingOverlap(training, sets)
    write_json(output, overlap)
    return overlap
