"""Fields of JSON lines and columns of tables: what is read, and what is said of malformed ones."""

import json

import pytest

from convs2s.data.formats import read_columns, read_field
from convs2s.errors import UserError

RECORDS = [
    {"text": "One  sentence.\n", "parts": ["First. ", " Second."], "number": 1},
    {"text": "", "parts": ["Café."], "number": 2},
]
LINES = [json.dumps(record) for record in RECORDS]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("text", ["One sentence.", ""]),
        ("parts", ["First. Second.", "Café."]),
        ("parts[0]", ["First.", "Café."]),
        ("parts[1]", ["Second.", ""]),
        ("parts[2]", ["", ""]),
    ],
)
def test_fields(field: str, text: list[str]) -> None:
    assert list(read_field(LINES, field, "f")) == text


@pytest.mark.parametrize(
    ("lines", "field", "message"),
    [
        (LINES, "part", "f:1: no field 'part'; there are text, parts, number"),
        (LINES, "number", "f:1: 'number' is neither a text nor a list of texts"),
        (LINES, "parts[x]", "expected a field NAME or NAME[N] after #, not 'parts[x]'"),
        (LINES, "", "expected a field NAME or NAME[N] after #, not ''"),
        ([LINES[0], "{"], "text", "f:2: not JSON: "),
        (
            [LINES[0], r'{"text": ["a \ud83d\ude00", "bad \ud83d end"]}'],
            "text",
            r"f:2: 'text' holds \ud83d alone, which is half a character: write the whole one, or ",
        ),
        ([LINES[0], "[]"], "text", "f:2: expected a JSON object in braces"),
    ],
)
def test_what_is_no_field(lines: list[str], field: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        list(read_field(lines, field, "f"))
    assert message in str(error.value)
    assert str(error.value).startswith("f:")
    assert "\n" not in str(error.value)


TABLE = 'id\ttitle\tnote\n1\tA title\t"two\n\tlines, ""quoted"""\n2\tAnother\t\n'


def test_columns_in_any_order() -> None:
    rows = list(read_columns([*TABLE.splitlines(), ""], ("note", "id"), "f"))
    assert rows == [('two\n\tlines, "quoted"', "1"), ("", "2")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f:1: no column id, title: "),
        ("id\tname\n1\t2\n", "f:1: no column title: expected a tab-separated table"),
        (
            "id\ttitle\n1\ta\n2\n",
            "f:3: expected 2 fields, as many as the first line has",
        ),
        ('id\ttitle\n1\t"never closed\n2\tb\n', "f:3: not a tab-separated table: "),
    ],
)
def test_what_is_no_table(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        list(read_columns(text.splitlines(), ("id", "title"), "f"))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
