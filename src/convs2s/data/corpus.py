"""Raw parallel text: from downloaded or local files to one file per side, and to shards of it."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path, PurePath

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import LocalFiles, parse_file_reference
from convs2s.data.formats import Segment, read_field, read_segments, spoken_lines
from convs2s.download.archives import open_member
from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path
from convs2s.files.compressed import decompressed_file, open_bytes, open_text
from convs2s.files.text import NO_MARK, paired, read_line_pairs, text_lines, write_lines

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
    read = count = 0
    with ExitStack() as stack:
        # Streams are closed before either file gets its name.
        paths = [stack.enter_context(atomic_path(path)) for path in output]
        sources, targets = (stack.enter_context(open_text(path)) for path in paths)
        for read, (line, other) in enumerate(_read_pairs(pairs, files), start=1):
            if hold_out is None or (read % hold_out.every == 0) == hold_out.held:
                sources.write(line + "\n")
                targets.write(other + "\n")
                count += 1
        if not count:
            names = " ".join(source for source, _ in pairs)
            rule = f", and every {hold_out.every}th is held out" if hold_out else ""
            raise UserError(f"{output[0]}: would be empty: {names} has {read} lines{rule}")
    return count


def extract_reference(*, pairs: Sequence[tuple[str, str]], files: LocalFiles, output: Path) -> int:
    """Write a further reference of a test set, line N of it beside line N of the target.

    Of ``pairs``, (target, reference), the targets' lines are counted alone; a UserError says that
    the numbers of lines differ. The number of lines is returned.
    """
    return write_lines(output, (line for _, line in _read_pairs(pairs, files)))


def shard_corpus(*, source: Path, target: Path, outputs: Sequence[Sides]) -> int:
    """Split two parallel files into contiguous ranges of lines of nearly equal length.

    The shards end to end are the input, whatever their number. None appears before all are written.
    The number of pairs is returned; a UserError says that the sides differ in it, or have fewer
    than shards.
    """
    count = sum(1 for _ in read_line_pairs(source, target, mark=NO_MARK))
    if count < len(outputs):
        raise UserError(f"{source}: {count} lines for {len(outputs)} shards: lower `shards`")
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


def gather_shards(*, shards: Sequence[Path], output: Path) -> None:
    """Join the shards of one side; the bytes depend on the text alone, not on where it was cut."""
    with atomic_path(output) as temporary, open_bytes(temporary) as joined:
        for shard in shards:
            with decompressed_file(shard) as stream:
                shutil.copyfileobj(stream, joined)


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
