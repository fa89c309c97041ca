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


def extract_corpus(
    *,
    pairs: Sequence[tuple[str, str]],
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
    count = 0
    with ExitStack() as stack:
        # Streams are closed before either file gets its name.
        paths = [stack.enter_context(atomic_path(path)) for path in output]
        sources, targets = (stack.enter_context(open_text(path)) for path in paths)
        for line, other in _split_pairs(pairs, files, hold_out, output[0]):
            sources.write(line + "\n")
            targets.write(other + "\n")
            count += 1
    return count


def _split_pairs(
    pairs: Sequence[tuple[str, str]], files: LocalFiles, hold_out: HoldOutPart | None, output: Path
) -> Iterator[tuple[str, str]]:
    """Yield the line pairs of a split; a UserError says that there are none for ``output``."""
    read = count = 0
    for read, pair in enumerate(_read_pairs(pairs, files), start=1):
        if hold_out is None or (read % hold_out.every == 0) == hold_out.held:
            count += 1
            yield pair
    if not count:
        names = " ".join(source for source, _ in pairs)
        rule = f", and every {hold_out.every}th is held out" if hold_out else ""
        raise UserError(f"{output}: would be empty: {names} has {read} lines{rule}")


def prepare_training_text(
    *,
    pairs: Sequence[tuple[str, str]],
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
    pairs: Sequence[tuple[str, str]],
    files: LocalFiles,
    hold_out: HoldOutPart | None,
    parts: Sequence[Sides],
) -> int:
    """Write the raw training text of a corpus in parts, which end to end are the whole.

    ``pairs``, ``files`` and ``hold_out`` are as of :func:`extract_corpus`. The number of pairs is
    returned.
    """
    with scratch_folder(parts[0][0].parent) as folder:
        whole = folder / "source.zst", folder / "target.zst"
        extract_corpus(pairs=pairs, files=files, hold_out=hold_out, output=whole)
        return cut_text(source=whole[0], target=whole[1], outputs=parts)


def join_training_text(
    *, parts: Sequence[Sides], reports: Sequence[Path], sides: Sides, report: Path
) -> None:
    """Join the filtered parts of the training text, and add up how many pairs each has dropped.

    The bytes depend on the text alone, not on where it was cut.
    """
    for output, files in zip(sides, zip(*parts, strict=True), strict=True):
        with atomic_path(output) as temporary, open_bytes(temporary) as joined:
            for part in files:
                with decompressed_file(part) as stream:
                    shutil.copyfileobj(stream, joined)
    write_json(report, added_reports(reports))


def extract_reference(*, pairs: Sequence[tuple[str, str]], files: LocalFiles, output: Path) -> int:
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
        parts = [[stack.enter_context(atomic_path(p)) for p in sides] for sides in outputs]
        for index, part in enumerate(parts):
            size = count * (index + 1) // len(parts) - count * index // len(parts)
            with open_text(part[0]) as sources, open_text(part[1]) as targets:
                for line, other in islice(pairs, size):
                    sources.write(line + "\n")
                    targets.write(other + "\n")
    return count


def _read_pairs(pairs: Iterable[tuple[str, str]], files: LocalFiles) -> Iterator[tuple[str, str]]:
    """Yield the line pairs of pairs of files.

    Where a side is longer, both are counted to their ends for the message. Segments to which their
    files give different ids are refused: they are no translations.
    """
    for references in pairs:
        with ExitStack() as stack:
            (source, source_lines), (target, target_lines) = (
                stack.enter_context(open_lines(reference, files)) for reference in references
            )
            both = paired(source_lines, target_lines, source, target)
            for number, (left, right) in enumerate(both, start=1):
                match left, right:
                    case Segment() as own, Segment() as other if not own.is_beside(other):
                        raise UserError(
                            f"{source}: its segment {number} has the id {own.place[1]} of document "
                            f"{own.place[0]}, but {target}'s has {other.place[1]} of document "
                            f"{other.place[0]}: both files need the same segments in the same order"
                        )
                yield left, right


@contextmanager
def open_lines(reference: str, files: LocalFiles) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield a referenced file's name for messages and its lines, segments or fields."""
    parsed = parse_file_reference(reference)
    path, member = files[parsed.location], parsed.member
    name = f"{path}#{member}" if member else str(path)
    with open_member(path, None if parsed.is_records else member) as stream:
        lines = text_lines(stream, name)
        file = PurePath(member or path)
        if parsed.is_records:
            lines = read_field(lines, member or "", name)
        elif {".sgm", ".sgml", ".xml"} & {suffix.lower() for suffix in file.suffixes[-2:]}:
            lines = read_segments(lines, name)
        elif file.name.startswith("train.tags."):
            lines = spoken_lines(lines)
        yield name, lines
