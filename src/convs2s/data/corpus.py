"""Read parallel text from downloaded or local files, and write it as one file per side.

The functions here write raw text, or tokenized and filtered text. A large corpus can be cut into
parts, so that several jobs tokenize it at the same time. Their results are then joined.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import LocalFiles, parse_file_reference
from convs2s.data.formats import (
    Segment,
    plain_lines,
    read_field,
    read_segments,
    spoken_lines,
)
from convs2s.download.archives import open_member
from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path, scratch_folder
from convs2s.files.compressed import decompressed_file, open_bytes, open_text
from convs2s.files.text import (
    NO_MARK,
    paired,
    read_line_pairs,
    text_lines,
    write_json,
    write_lines,
)
from convs2s.text.corpus_filter import added_reports, tokenize_and_filter

Sides = tuple[Path, Path]
"""The file of the source side and the file of the target side."""

FileNamePair = tuple[str, str]
"""The names of two parallel files, (source, target), as `parse_file_reference` reads them."""

LinePair = tuple[str, str]
"""A source line and the target line that translates it."""

_SEGMENTED = frozenset({".sgm", ".sgml", ".xml"})
"""Suffixes of files whose text is in <seg> elements."""


@dataclass(frozen=True)
class RawText:
    """The raw text of a split, as the configuration states it."""

    pairs: Sequence[FileNamePair]
    """The files to read, in this order. The segments of an sgm file are its lines."""

    files: LocalFiles
    """Maps the location in each file's name to the local file."""

    hold_out: HoldOutPart | None = None
    """Which part of the training text to take, if validation text is split off from it.

    Paper, section 4.1: 0.5-1% of the training text. Pairs are numbered before any cleaning, as in
    the authors' preparation scripts. The pairs whose number is a multiple of ``hold_out.every`` are
    held out. None takes everything.
    """

    def line_pairs(self, output: Path) -> Iterator[LinePair]:
        """Yield the line pairs of the split.

        Raises:
            UserError: there are no such pairs, so that ``output`` would be empty, or the files
                cannot be read as pairs of lines.
        """
        hold_out = self.hold_out
        number = 0
        is_empty = True
        for number, pair in enumerate(read_pairs(self.pairs, self.files), start=1):
            is_held_out = hold_out is not None and number % hold_out.every == 0
            # hold_out.held says which pairs to take: those that are held out, or all others.
            if hold_out is None or is_held_out == hold_out.held:
                is_empty = False
                yield pair
        if is_empty:
            names = " ".join(source for source, _ in self.pairs)
            rule = f", and every {hold_out.every}th is held out" if hold_out else ""
            raise UserError(
                f"{output}: would be empty: {names} has {number} lines{rule}"
            )


def extract_corpus(text: RawText, output: Sides) -> int:
    """Write the raw text of one split, one file per side, and return the number of line pairs.

    Neither output appears before both are written, and memory does not grow with the corpus.

    Raises:
        UserError: a file or member is missing or refused, a line is not UTF-8 or too long, the two
            files of a pair differ in their number of lines, or nothing is left to write.
    """
    pairs = text.line_pairs(output[0])
    with atomic_path(output[0]) as source, atomic_path(output[1]) as target:
        return _write_pairs(pairs, source, target)


def _write_pairs(
    pairs: Iterable[LinePair],
    source: Path,
    target: Path,
) -> int:
    """Write line pairs to one file per side, close both files, and return the number of pairs."""
    count = 0
    with open_text(source) as source_stream, open_text(target) as target_stream:
        for source_line, target_line in pairs:
            source_stream.write(source_line + "\n")
            target_stream.write(target_line + "\n")
            count += 1
    return count


def prepare_training_text(
    text: RawText,
    *,
    sides: Sides,
    report: Path,
    **filtering: Any,
) -> None:
    """Write the training text of a corpus, tokenized and filtered, and the report of the filter.

    ``sides``, ``report`` and the keyword arguments ``filtering`` are passed to
    :func:`~convs2s.text.corpus_filter.tokenize_and_filter`.
    """
    pairs = text.line_pairs(sides[0])
    tokenize_and_filter(pairs, sides=sides, report=report, **filtering)


def split_training_text(text: RawText, *, parts: Sequence[Sides]) -> int:
    """Write the raw training text of a corpus in parts, and return the number of line pairs.

    Joined in their order, the parts are the text that :func:`extract_corpus` writes.
    """
    # The whole text is written first, because `cut_text` has to count its lines.
    with scratch_folder(parts[0][0].parent) as folder:
        source = folder / "source.zst"
        target = folder / "target.zst"
        extract_corpus(text, (source, target))
        return cut_text(source=source, target=target, outputs=parts)


def join_training_text(
    *,
    parts: Sequence[Sides],
    reports: Sequence[Path],
    sides: Sides,
    report: Path,
) -> None:
    """Join the filtered parts of the training text, and add up their reports.

    The bytes of the outputs do not depend on where the text was cut.
    """
    for side_index, output in enumerate(sides):
        with atomic_path(output) as temporary, open_bytes(temporary) as joined:
            for part in parts:
                with decompressed_file(part[side_index]) as stream:
                    shutil.copyfileobj(stream, joined)
    write_json(report, added_reports(reports))


def extract_reference(text: RawText, output: Path) -> int:
    """Write a further reference translation of a test set, and return the number of lines.

    ``text`` has (target, reference) files. Only the references are written. The targets are read to
    check that line N of the reference belongs to line N of the target.

    Raises:
        UserError: a file cannot be read, or a target and its reference differ in their number of
            lines or in the ids of their segments.
    """
    pairs = read_pairs(text.pairs, text.files)
    return write_lines(output, (reference for _, reference in pairs))


def cut_text(
    *,
    source: Path,
    target: Path,
    outputs: Sequence[Sides],
) -> int:
    """Cut two parallel files into parts with nearly the same number of lines.

    Joined in their order, the parts are the input. No part appears before all parts are written.
    Return the number of line pairs of the whole text.

    Raises:
        UserError: the sides differ in their number of lines, or have fewer lines than there are
            parts.
    """
    count = sum(1 for _ in read_line_pairs(source, target, mark=NO_MARK))
    if count < len(outputs):
        raise UserError(
            f"{outputs[0][0]}: the text has {count} lines for {len(outputs)} parts: set fewer, by "
            f"--set-scatter parts={count}"
        )
    pairs = read_line_pairs(source, target, mark=NO_MARK)
    with ExitStack() as stack:
        start = 0
        for number, (source_part, target_part) in enumerate(outputs, start=1):
            end = count * number // len(outputs)
            size = end - start
            _write_pairs(
                islice(pairs, size),
                stack.enter_context(atomic_path(source_part)),
                stack.enter_context(atomic_path(target_part)),
            )
            start = end
    return count


def read_pairs(pairs: Iterable[FileNamePair], files: LocalFiles) -> Iterator[LinePair]:
    """Yield the line pairs of pairs of files, one pair of files after the other.

    ``files`` maps the location in each file's name to the local file.

    Raises:
        UserError: two files differ in their number of lines, or the N-th segments of two sgm files
            have different ids and are therefore no translations of each other. If the numbers of
            lines differ, both files are read to their ends, so that the message can give them.
    """
    for source_file, target_file in pairs:
        with (
            open_lines(source_file, files) as (source_name, source_lines),
            open_lines(target_file, files) as (target_name, target_lines),
        ):
            line_pairs = paired(source_lines, target_lines, source_name, target_name)
            for number, (source, target) in enumerate(line_pairs, start=1):
                if isinstance(source, Segment) and isinstance(target, Segment):
                    _check_same_ids(source, target, number, (source_name, target_name))
                yield source, target


def _check_same_ids(
    source: Segment,
    target: Segment,
    number: int,
    names: tuple[str, str],
) -> None:
    """Raise a UserError if the N-th segments of two files, called ``names``, have different ids."""
    if source.is_beside(target):
        return
    source_document, source_id = source.ids
    target_document, target_id = target.ids
    raise UserError(
        f"{names[0]}: its segment {number} has the id {source_id} of document {source_document}, "
        f"but {names[1]}'s has the id {target_id} of document {target_document}: both files need "
        "the same segments in the same order"
    )


@contextmanager
def open_lines(
    reference: str, files: LocalFiles
) -> Iterator[tuple[str, Iterator[str]]]:
    """Open a file that the configuration names, and yield its name for messages and its lines.

    What counts as a line depends on the reference and the file's name: a field of each JSON record,
    a segment of an sgm or xml file, a line of a talk's transcript (``train.tags.*``) that is not
    about the talk, or else a plain line. ``files`` maps the reference's location to the local file.

    Raises:
        UserError: The file cannot be read, or it contains markup or JSON although its name is that
            of a file of plain lines. Iterating over the lines can raise it, too.
    """
    parsed = parse_file_reference(reference)
    path = files[parsed.location]
    member = parsed.member
    name = f"{path}#{member}" if member else str(path)
    # Of a file of JSON records, the part after # is a field and not a member of an archive.
    with open_member(path, None if parsed.is_records else member) as stream:
        lines = text_lines(stream.readline, name)
        file = PurePath(member or path)
        # The last suffix may be that of a compression, as in .sgm.gz.
        suffixes = PurePath(file.name.lower()).suffixes[-2:]
        if parsed.is_records:
            lines = read_field(lines, member or "", name)
        elif not _SEGMENTED.isdisjoint(suffixes):
            lines = read_segments(lines, name)
        elif file.name.startswith("train.tags."):
            lines = spoken_lines(lines)
        else:
            lines = plain_lines(lines, name)
        yield name, lines
