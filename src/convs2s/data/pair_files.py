"""Read pairs of sentences from the files that people have, whatever their format.

A pair file has both sides: a table (TSV, CSV, Parquet), JSON lines, a translation memory (TMX) or a
test set in WMT's XML. Any other file has the lines of one side, and another file those of the other
side. All files are read from start to end, so that memory does not grow with them.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path, PurePath

from convs2s.config.corpus import Languages
from convs2s.config.file_reference import parse_file_reference
from convs2s.data.corpus import LinePair, read_pairs
from convs2s.data.formats import record_of_line
from convs2s.data.pair_xml import read_tmx, read_wmt, speaks
from convs2s.download.archives import is_archive, member_names, open_member
from convs2s.errors import UserError, failures_of_file
from convs2s.files.compressed import compression_of, open_input, refuse_bomb
from convs2s.files.limits import LONGEST_SEGMENT
from convs2s.files.text import text_lines
from convs2s.text.languages import is_name_of

_RECORDS = frozenset({".jsonl", ".json", ".ndjson"})
_PAIR_FILES = _RECORDS | {".tsv", ".tab", ".csv", ".tmx", ".xml", ".parquet"}

# Names of the column or the key of each side, source and target, besides those of its language.
_SIDE_NAMES = (("source", "src"), ("target", "trg", "tgt"))

# Number of lines at the beginning of a table that decide how it is read.
_LINES_OF_HEAD = 20
# Maximum number of names that a message lists.
_MOST_SHOWN = 20
# A cell that a spreadsheet has put into quotation marks because it has such marks, now doubled.
_DOUBLED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')
# Half of a surrogate pair, which JSON can escape.
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_ROWS_OF_PARQUET = 1024


@dataclass(frozen=True)
class TableHead:
    """What the beginning of a table says of its columns."""

    name: str
    columns: tuple[int, int]
    """The numbers, from 1, of the columns of source and target."""
    titles: list[str] | None
    """The cells of the first row if they name the columns; None if the first row is a pair."""


@dataclass(frozen=True)
class Reading:
    """What to read from pair files."""

    languages: Languages
    columns: tuple[str, str] | None = None
    """The two columns of a table, or keys of a record, by name or, for a table, by number from 1.

    None: those that are named like the two sides, or else the only two columns.
    """
    reference: str | None = None
    """The translator of the reference to read from a test set of WMT; None: the only one."""
    tables: list[TableHead] = field(default_factory=list)
    """The tables that were read so far. The function that reads a table adds its head."""


def read_files(files: Sequence[str], reading: Reading) -> Iterator[LinePair]:
    """Yield the pairs of all files, one after the other, with all characters as they are.

    Each name is a path, or ``ARCHIVE#MEMBER``. If an archive is named without a member, its only
    pair file is read, or its only two files whose names end in the languages. Files of one side are
    taken in pairs, in the order in which they are named. The first of a pair is the source, unless
    the languages at the ends of their names say the opposite.

    Raises:
        UserError: a file cannot be read, or is not of the format that its name states. The message
            names the file and, where there is one, the line.
    """
    names: list[str] = []
    for file in files:
        if "://" in file:
            raise UserError(
                f"{file}: is a URL: download the file, or name it in a task (docs/data.md)"
            )
        names += _members(file, reading.languages) if is_archive(file) else [file]
    one_sided = [name for name in names if _suffix(name) not in _PAIR_FILES]
    # A single one has no other side, so it must be a table.
    if len(one_sided) == 1:
        one_sided = []
    if len(one_sided) % 2:
        raise UserError(
            f"{one_sided[-1]}: has no other side: name the two files of a pair, or rename a table "
            "to NAME.tsv"
        )
    for name in names:
        if name not in one_sided:
            yield from _checked(_read_pair_file(name, reading), name)
    for first, second in zip(one_sided[::2], one_sided[1::2], strict=True):
        yield from _checked(_read_sides(first, second, reading.languages), first)


def _suffix(name: str) -> str:
    """Return the suffix of a file in lower case: .tsv of ``A.zip#B.TSV`` and of ``B.tsv.gz``."""
    path = PurePath(name.lower().rpartition("#")[2])
    if compression_of(path.name) is not None:
        path = path.with_suffix("")
    return path.suffix


def _members(archive: str, languages: Languages) -> list[str]:
    """Return the files to read from an archive, as ``ARCHIVE#MEMBER``.

    Raises:
        UserError: the archive has neither two files of one side nor exactly one pair file.
    """
    members = []
    for member in member_names(archive):
        is_hidden = member.startswith("__MACOSX/") or "/." in f"/{member}"
        if not is_hidden:
            members.append(member)
    endings = (f".{languages.source}", f".{languages.target}")
    sides = [member for member in members if _suffix(member) in endings]
    chosen = [member for member in members if _suffix(member) in _PAIR_FILES]
    has_one_of_each = len(sides) == 2 and _suffix(sides[0]) != _suffix(sides[1])
    if has_one_of_each:
        chosen = sides
    elif len(chosen) != 1:
        shown = ", ".join(members[:_MOST_SHOWN]) or "none"
        raise UserError(
            f"{archive}: expected two files that end in {' and '.join(endings)}, or one pair file; "
            f"name the member to read, as in {archive}#MEMBER; its files are: {shown}"
        )
    return [f"{archive}#{member}" for member in chosen]


def _checked(pairs: Iterable[LinePair], name: str) -> Iterator[LinePair]:
    """Yield the pairs, and check that each text can be a sentence.

    Raises:
        UserError: a text has a NUL character or half of a character, or is too long.
    """
    for number, pair in enumerate(pairs, start=1):
        for text in pair:
            fault = None
            if "\0" in text:
                fault = (
                    "a NUL character: it is no text, or UTF-16 without a byte order mark: "
                    "iconv -f UTF-16LE -t UTF-8 OLD > NEW"
                )
            elif len(text) > LONGEST_SEGMENT:
                fault = f"more than {LONGEST_SEGMENT} characters: it is no sentence"
            elif _HALF_CHARACTER.search(text):
                fault = (
                    "half of a character (\\ud800 to \\udfff): write the whole one, or leave it "
                    "out"
                )
            if fault:
                raise UserError(f"{name}: pair {number} has {fault}")
        yield pair


def _read_sides(first: str, second: str, languages: Languages) -> Iterator[LinePair]:
    """Yield the line pairs of two files, of which the first is the source.

    The two are exchanged if the languages at the ends of their names say the opposite.

    Raises:
        UserError: they differ in their number of lines, or both are tables.
    """
    starts_with_target = _suffix(first) == f".{languages.target}"
    ends_with_source = _suffix(second) == f".{languages.source}"
    if starts_with_target and ends_with_source:
        first, second = second, first
    references = map(parse_file_reference, (first, second))
    files = {file.location: Path(file.location) for file in references}
    pairs = read_pairs([(first, second)], files)
    head = list(islice(pairs, _LINES_OF_HEAD))
    if head and all("\t" in source and "\t" in target for source, target in head):
        raise UserError(
            f"{first}: has tabs in its lines, and so has {second}: rename tables to NAME.tsv"
        )
    yield from head
    yield from pairs


def _read_pair_file(name: str, reading: Reading) -> Iterator[LinePair]:
    """Yield the pairs of a file that has both sides. A file without a known suffix is a table."""
    suffix = _suffix(name)
    if suffix == ".parquet":
        for number, row in enumerate(_rows_of_parquet(name), start=1):
            yield _pair_of_record(row, f"{name}: row {number}", reading)
        return
    path, _, member = name.partition("#")
    with open_member(path, member or None) as stream:
        if suffix == ".tmx":
            yield from read_tmx(stream, reading.languages, name)
            return
        if suffix == ".xml":
            yield from read_wmt(stream, reading.languages, reading.reference, name)
            return
        lines = text_lines(stream.readline, name)
        if suffix in _RECORDS:
            yield from _read_records(lines, name, reading)
        else:
            yield from _read_table(lines, name, reading)


def _read_table(
    lines: Iterator[str], name: str, reading: Reading
) -> Iterator[LinePair]:
    """Yield the pairs of a table, whose first row may name its columns."""
    head = list(islice(lines, _LINES_OF_HEAD))
    lines = chain(head, lines)
    if _suffix(name) == ".csv":
        rows = _quoted_rows(lines, _delimiter(head, name, reading), name)
    elif head and all(_is_quoted(line) for line in head):
        rows = _quoted_rows(lines, "\t", name)
    else:
        rows = _plain_rows(lines, name)
    width = 0  # number of columns, 0 before the first row
    for number, row in rows:
        # An empty line is no row.
        if row in ([], [""]):
            continue
        if not width:
            width = len(row)
            (source, target), is_header = _columns(row, name, reading)
            titles = row if is_header else None
            reading.tables.append(TableHead(name, (source + 1, target + 1), titles))
            if is_header:
                continue
        if len(row) != width:
            raise UserError(
                f"{name}:{number}: expected {width} cells, as in the first row, not "
                f"{len(row)}: is a tab or a quotation mark missing, or one too many?"
            )
        yield row[source], row[target]


def _is_quoted(line: str) -> bool:
    """Return whether each cell of a line of tab-separated cells is in quotation marks."""
    cells = line.rstrip("\r").split("\t")
    return all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)


def _plain_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line of a tab-separated table.

    Quotation marks are text. The exception is a cell that is in quotation marks and has doubled
    ones in it: only a spreadsheet writes such a cell, and its marks are removed.

    Raises:
        UserError: a line has no tab.
    """
    for number, line in enumerate(lines, start=1):
        cells = line.rstrip("\r").split("\t")
        for place, cell in enumerate(cells):
            if _DOUBLED.fullmatch(cell):
                cells[place] = cell[1:-1].replace('""', '"')
        if len(cells) == 1 and cells[0]:
            raise UserError(
                f"{name}:{number}: has no tab: expected a sentence, a tab and its translation; of "
                "text in two files, name both; if a cell has several lines, save it as CSV"
            )
        yield number, cells


def _quoted_rows(
    lines: Iterable[str],
    delimiter: str,
    name: str,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row of a table with quoted cells, and the line where it begins.

    Raises:
        UserError: a quotation mark is not closed, or something follows the closing one.
    """
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=delimiter, strict=True
    )
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise UserError(
                f"{name}:{number}: not a row of a table: {error}; a quotation mark in a cell is "
                "written twice, and the cell in quotation marks"
            ) from None
        if row is None:
            return
        yield number, row


def _delimiter(head: Sequence[str], name: str, reading: Reading) -> str:
    """Return the delimiter of the cells of a CSV table.

    It is a delimiter with which the first row names both sides, or else the only delimiter that
    splits each of the first lines into the same number of cells, two or more.

    Raises:
        UserError: no delimiter does, or several do.
    """
    likely = []
    for delimiter in (",", ";", "\t"):
        reader = csv.reader((f"{line}\n" for line in head), delimiter=delimiter)
        try:
            rows = list(reader)
            # The last row may go on after these lines.
            rows = rows[:-1] or rows
        except csv.Error:
            continue
        if rows and _named(rows[0], reading.languages):
            return delimiter
        counts = {len(row) for row in rows if row}
        if len(counts) == 1 and counts != {1}:
            likely.append(delimiter)
    if len(likely) != 1:
        raise UserError(
            f"{name}: cannot be told apart into columns by one of comma, semicolon and tab: add a "
            f"first row that names the columns, such as {reading.languages.source},"
            f"{reading.languages.target}"
        )
    return likely[0]


def _columns(
    first: Sequence[str], name: str, reading: Reading
) -> tuple[tuple[int, int], bool]:
    """Return the places of the two columns to read, and whether the first row names columns.

    Places are counted from 0.

    Raises:
        UserError: the table does not have the columns that ``reading`` states; or ``reading``
            states none, and the first row neither names the two sides nor has exactly two cells.
    """
    named = _named(first, reading.languages)
    stated = reading.columns
    if stated is None:
        if named:
            return named, True
        if len(first) == 2:
            return (0, 1), False
        problem = (
            f"its first row has {len(first)} cells and names no columns "
            f"{reading.languages.source} and {reading.languages.target}: choose two, such as "
            "--columns 1 2; it has"
        )
    else:
        cells = [cell.strip() for cell in first]
        if all(column in cells for column in stated):
            return (cells.index(stated[0]), cells.index(stated[1])), True
        if all(re.fullmatch("[1-9][0-9]{0,3}", column) for column in stated):
            places = (int(stated[0]) - 1, int(stated[1]) - 1)
            if max(places) < len(first):
                # Numbers do not tell whether the first row names columns.
                return places, named is not None
        problem = f"no columns {' and '.join(stated)}; its first row has"
    shown = ", ".join(repr(cell[:20]) for cell in first)
    raise UserError(f"{name}: {problem}: {shown}")


def _named(names: Iterable[object], languages: Languages) -> tuple[int, int] | None:
    """Return the places, from 0, of the names of the two sides.

    Return None if a side is not named exactly once. A side is named by its language, such as en,
    en-US, Romanian or Română, or by a word such as source or target.
    """
    places: list[int] = []
    sides = zip((languages.source, languages.target), _SIDE_NAMES, strict=True)
    for language, side_names in sides:
        found = []
        for place, name in enumerate(names):
            text = str(name).strip().lower()
            # Codes are short, such as zh-hant-hk. A sentence can begin like one: "No-one came".
            is_code = len(text) <= 12 and speaks(text, language)
            if is_code or text in side_names or is_name_of(text, language):
                found.append(place)
        if len(found) != 1:
            return None
        places += found
    return places[0], places[1]


def _read_records(
    lines: Iterable[str],
    name: str,
    reading: Reading,
) -> Iterator[LinePair]:
    """Yield the pairs of JSON lines: {"translation": {"en": ..., "ro": ...}} or the inner object.

    Raises:
        UserError: a line is not such an object. The message names the line and its keys.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            place = f"{name}:{number}"
            if number == 1 and line.lstrip().startswith("["):
                raise UserError(
                    f"{place}: a JSON list: write one record a line: jq -c '.[]' OLD > NEW.jsonl"
                )
            yield _pair_of_record(record_of_line(line, place), place, reading)


def _pair_of_record(
    record: dict[str, object], place: str, reading: Reading
) -> LinePair:
    """Return the source and the target text of a record. For null, the text is empty.

    Raises:
        UserError: the record does not have the two keys, or a value is not a text.
    """
    translation = record.get("translation")
    if isinstance(translation, dict):
        record = translation
    keys = list(record)
    chosen = reading.columns
    if chosen is None and (named := _named(keys, reading.languages)):
        chosen = (keys[named[0]], keys[named[1]])
    if chosen is None or not record.keys() >= {*chosen}:
        languages = reading.languages
        source, target = reading.columns or (languages.source, languages.target)
        raise UserError(
            f"{place}: expected the keys {source} and {target}, or choose two by --columns; there "
            f"are: {', '.join(keys[:_MOST_SHOWN]) or 'none'}"
        )
    texts = []
    for key in chosen:
        text = record[key]
        if not isinstance(text, str | None):
            raise UserError(f"{place}: '{key}' is not a text")
        texts.append(text or "")
    return texts[0], texts[1]


def _rows_of_parquet(name: str) -> Iterator[dict[str, object]]:
    """Yield the rows of a Parquet file.

    Raises:
        UserError: the file is compressed, in an archive, damaged or a decompression bomb.
    """
    import pyarrow.parquet as parquet

    path = Path(name)
    if "#" in name or path.suffix.lower() != ".parquet":
        raise UserError(
            f"{name}: Parquet is not read from within other files: unpack it"
        )
    with open_input(path), failures_of_file(name, "not a Parquet file"):
        file = parquet.ParquetFile(path)
        for number in range(file.metadata.num_row_groups):
            size = file.metadata.row_group(number).total_byte_size
            refuse_bomb(path.stat().st_size, size, name)
        for batch in file.iter_batches(batch_size=_ROWS_OF_PARQUET):
            yield from batch.to_pylist()
