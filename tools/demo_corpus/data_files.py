"""Reads the data files of the demo's grammar; what is wrong with one is said by file and line.

A table (.tsv) is UTF-8 text with one entry a line, its cells parted by tabs; cells left out at the
end of a line are empty. Its first line names the columns. Lines that are empty or open with ``#``
are passed over. A list of records (.yaml) is a mapping of topics to lists of mappings.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from convs2s.errors import UserError
from convs2s.files.text import text_lines

DATA = Path(__file__).with_name("data")

Value = TypeVar("Value")


@dataclass(frozen=True)
class DataRow:
    """One entry of a data file."""

    place: str
    """Its file and line, for messages."""
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        """Return the text of a column."""
        return self.cells[column]

    def choice(self, column: str, choices: Collection[str]) -> str:
        """Return the text of a column, one of some choices.

        Raises:
            UserError: it is none of them.
        """
        if self[column] not in choices:
            raise self.fault(
                f"{column} is {self[column]!r}; expected one of: {', '.join(choices)}"
            )
        return self[column]

    def look_up(self, name: str, named: Mapping[str, Value], what: str) -> Value:
        """Return what the row refers to by name.

        Raises:
            UserError: nothing has that name.
        """
        if name not in named:
            raise self.fault(
                f"there is no {what} {name!r}; known: {', '.join(sorted(named))}"
            )
        return named[name]

    def fault(self, message: str) -> UserError:
        """Return the error that says what is wrong with this row."""
        return UserError(f"{self.place}: {message}")


def read_table(file: Path, required: str, optional: str = "") -> Iterator[DataRow]:
    """Yield the rows of a table.

    Args:
        file: the table.
        required: the names of the columns that are never empty, parted by spaces.
        optional: the names of the columns behind them, which may be empty.

    Raises:
        UserError: the header is another one, or a line has too many cells or too few.
    """
    columns = [*required.split(), *optional.split()]
    lines = _table_lines(file)
    place, header = next(lines, (str(file), ""))
    if header.split("\t") != columns:
        raise UserError(
            f"{place}: expected the columns {', '.join(columns)}, parted by tabs"
        )
    for place, line in lines:
        cells = [cell.strip() for cell in line.split("\t")]
        row = DataRow(
            place, dict.fromkeys(columns, "") | dict(zip(columns, cells, strict=False))
        )
        if len(cells) > len(columns):
            expected = f"expected at most {len(columns)}: {', '.join(columns)}"
            raise row.fault(f"{len(cells)} cells; {expected}")
        for column in required.split():
            if not row[column]:
                raise row.fault(f"{column} is empty")
        yield row


def _table_lines(file: Path) -> Iterator[tuple[str, str]]:
    with file.open("rb") as stream:
        for number, line in enumerate(text_lines(stream.readline, str(file)), start=1):
            if line.strip() and not line.startswith("#"):
                yield f"{file}:{number}", line


def read_records(file: Path, keys: Sequence[str]) -> Iterator[DataRow]:
    """Yield the records of a YAML file, over all its topics.

    Args:
        file: the YAML file.
        keys: the keys that every record has, each of them for a text.

    Raises:
        UserError: the file is no YAML, or not such a mapping of topics to lists of records.
    """
    root = _yaml_root(file)
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"{file}: expected a mapping of topics to lists")
    for topic, records in root.value:
        if not isinstance(records, yaml.SequenceNode):
            raise UserError(
                f"{_place(file, topic.start_mark)}: expected a list below this topic"
            )
        for record in records.value:
            yield _record(file, record, keys)


def _yaml_root(file: Path) -> yaml.Node | None:
    with file.open("rb") as stream:
        text = "\n".join(text_lines(stream.readline, str(file)))
    try:
        return yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        place = _place(file, error.problem_mark) if error.problem_mark else file
        raise UserError(f"{place}: not YAML: {error.problem}") from None


def _place(file: Path, mark: yaml.Mark) -> str:
    return f"{file}:{mark.line + 1}"


def _record(file: Path, node: yaml.Node, keys: Sequence[str]) -> DataRow:
    place = _place(file, node.start_mark)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    texts = [(key.value, value.value) for key, value in pairs if _is_text(value)]
    if sorted(key for key, _ in texts) != sorted(keys) or len(texts) != len(pairs):
        raise UserError(f"{place}: expected a text for each of: {', '.join(keys)}")
    return DataRow(place, dict(texts))


def _is_text(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and bool(node.value)


def require(
    names: Collection[str], given: Collection[str], file: Path, what: str
) -> None:
    """Check that a file has all entries that the engine asks for by name.

    Raises:
        UserError: one is missing.
    """
    for name in names:
        if name not in given:
            raise UserError(f"{file}: the {what} {name!r} is missing")
