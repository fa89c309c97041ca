"""Parallel text: from downloaded or local files to one file per side, and to words.

Text of a large corpus is cut into parts, which jobs tokenize side by side.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import LocalFiles, parse_file_reference
from convs2s.data.formats import Segment, read_field, read_segments, spoken_lines
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
from convs2s.text.corpus_filter import FilterReport, added_reports, tokenize_and_filter

Sides = tuple[Path, Path]  # the source side's file and the target side's
References = tuple[str, str]  # both files as the configuration names them
LinePair = tuple[str, str]

_SEGMENTED = frozenset({".sgm", ".sgml", ".xml"})


def extract_corpus(
    *,
    pairs: Sequence[References],
    files: LocalFiles,
    output: Sides,
    hold_out: HoldOutPart | None = None,
) -> int:
    """Write the pairs of files of one split as one file per side, in their order; return how many.

    Neither output appears before both are written; memory does not grow with the corpus. ``pairs``
    are (source, target) references as the configuration has them; sgm files give segments.
    ``files`` has the place of each location. ``hold_out`` is the part to take of training text
    from which validation text is split off (the paper's section 4.1: 0.5-1% of it; counted before
    any cleaning, as the authors' preparation scripts do). A UserError says that a file or member is
    missing or refused, that a line is not UTF-8 or overlong, that the two sides of a pair of files
    differ in their number of lines, or that nothing is left to write.
    """
    split = _split_pairs(pairs, files, hold_out, output[0])
    with atomic_path(output[0]) as source, atomic_path(output[1]) as target:
        return _write_pairs(split, source, target)


def _write_pairs(pairs: Iterable[LinePair], source: Path, target: Path) -> int:
    """Write line pairs, a file for each side; return their number, once both are closed."""
    count = 0
    with open_text(source) as sources, open_text(target) as targets:
        for line, other in pairs:
            sources.write(line + "\n")
            targets.write(other + "\n")
            count += 1
    return count


def _split_pairs(
    pairs: Sequence[References], files: LocalFiles, hold_out: HoldOutPart | None, output: Path
) -> Iterator[LinePair]:
    """Yield the line pairs of a split; a UserError says that there are none for ``output``."""
    read = 0
    is_empty = True
    for pair in _read_pairs(pairs, files):
        read += 1
        if hold_out is None or (read % hold_out.every == 0) == hold_out.held:
            is_empty = False
            yield pair
    if is_empty:
        names = " ".join(source for source, _ in pairs)
        rule = f", and every {hold_out.every}th is held out" if hold_out else ""
        raise UserError(f"{output}: would be empty: {names} has {read} lines{rule}")


def prepare_training_text(
    *,
    pairs: Sequence[References],
    files: LocalFiles,
    hold_out: HoldOutPart | None,
    sides: Sides,
    report: Path,
    **filtering: Any,
) -> FilterReport:
    """Write the training text of a corpus as words, without the pairs that are no good.

    ``pairs``, ``files`` and ``hold_out`` are as of :func:`extract_corpus`, all else is as of
    :func:`~convs2s.text.corpus_filter.tokenize_and_filter`.
    """
    raw = _split_pairs(pairs, files, hold_out, sides[0])
    return tokenize_and_filter(raw, sides=sides, report=report, **filtering)


def split_training_text(
    *,
    pairs: Sequence[References],
    files: LocalFiles,
    hold_out: HoldOutPart | None,
    parts: Sequence[Sides],
) -> int:
    """Write the raw training text of a corpus in parts, which end to end are the whole.

    ``pairs``, ``files`` and ``hold_out`` are as of :func:`extract_corpus`. The number of pairs is
    returned.
    """
    with scratch_folder(parts[0][0].parent) as folder:
        source = folder / "source.zst"
        target = folder / "target.zst"
        extract_corpus(pairs=pairs, files=files, hold_out=hold_out, output=(source, target))
        return cut_text(source=source, target=target, outputs=parts)


def join_training_text(
    *, parts: Sequence[Sides], reports: Sequence[Path], sides: Sides, report: Path
) -> None:
    """Join the filtered parts of the training text, and add up how many pairs each has dropped.

    The bytes depend on the text alone, not on where it was cut.
    """
    for side, output in enumerate(sides):
        with atomic_path(output) as temporary, open_bytes(temporary) as joined:
            for part in parts:
                with decompressed_file(part[side]) as stream:
                    shutil.copyfileobj(stream, joined)
    write_json(report, added_reports(reports))


def extract_reference(*, pairs: Sequence[References], files: LocalFiles, output: Path) -> int:
    """Write a further reference of a test set, line N of it beside line N of the target.

    Of ``pairs``, (target, reference), the targets' lines are counted alone; a UserError says that
    the numbers of lines differ. The number of lines is returned.
    """
    return write_lines(output, (line for _, line in _read_pairs(pairs, files)))


def cut_text(*, source: Path, target: Path, outputs: Sequence[Sides]) -> int:
    """Cut two parallel files into contiguous ranges of lines of nearly equal length.

    The parts end to end are the input, whatever their number. None appears before all are written.
    The number of pairs is returned; a UserError says that the sides differ in it, or have fewer
    than parts.
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


def _read_pairs(pairs: Iterable[References], files: LocalFiles) -> Iterator[LinePair]:
    """Yield the line pairs of pairs of files.

    Where a side is longer, both are counted to their ends for the message. Segments to which their
    files give different ids are refused: they are no translations.
    """
    for source_reference, target_reference in pairs:
        with (
            open_lines(source_reference, files) as (source, source_lines),
            open_lines(target_reference, files) as (target, target_lines),
        ):
            both = paired(source_lines, target_lines, source, target)
            for number, (line, other) in enumerate(both, start=1):
                if (
                    isinstance(line, Segment)
                    and isinstance(other, Segment)
                    and not line.is_beside(other)
                ):
                    raise UserError(
                        f"{source}: its segment {number} has the id {line.ids[1]} of document "
                        f"{line.ids[0]}, but {target}'s has the id {other.ids[1]} of document "
                        f"{other.ids[0]}: both files need the same segments in the same order"
                    )
                yield line, other


@contextmanager
def open_lines(reference: str, files: LocalFiles) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield a referenced file's name for messages and its lines, segments or fields."""
    parsed = parse_file_reference(reference)
    path = files[parsed.location]
    member = parsed.member
    name = f"{path}#{member}" if member else str(path)
    with open_member(path, None if parsed.is_records else member) as stream:
        lines = text_lines(stream.readline, name)
        file = PurePath(member or path)
        suffixes = PurePath(file.name.lower()).suffixes[-2:]  # one may be that of a compression
        if parsed.is_records:
            lines = read_field(lines, member or "", name)
        elif not _SEGMENTED.isdisjoint(suffixes):
            lines = read_segments(lines, name)
        elif file.name.startswith("train.tags."):
            lines = spoken_lines(lines)
        yield name, lines
