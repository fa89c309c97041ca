"""YAML, read safely."""

import re
from pathlib import Path

import pytest

from convs2s.config.yaml_file import read_yaml
from convs2s.errors import UserError


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return read_yaml(path, "a.yaml")


@pytest.mark.parametrize(
    ("text", "value"), [("", None), ("# a\n", None), ("1e-4", 1e-4)]
)
def test_values(tmp_path: Path, text: str, value: object) -> None:
    assert read(tmp_path, text) == value


def test_a_folder_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^a\.yaml: cannot be read: Is a directory$"):
        read_yaml(tmp_path, "a.yaml")


def test_what_is_merged_in_may_repeat_keys_at_any_depth(tmp_path: Path) -> None:
    text = "b: &b {k: 1}\nx: {y: &a {<<: *b, k: 2}}\nc: {<<: *a, k: 3}\n"
    assert read(tmp_path, text) == {"b": {"k": 1}, "x": {"y": {"k": 2}}, "c": {"k": 3}}


@pytest.mark.parametrize("text", ["a: 1\na: 1", "x: [{a: 1, a: 2}]", "x: {1: 2, 1: 3}"])
def test_a_key_stated_twice_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"a\.yaml:\d: duplicate key '[a1]'"):
        read(tmp_path, text)


def test_a_list_within_itself_is_no_endless_loop(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"a\.yaml:1: more than 60 nested lists and mappings"
    ):
        read(tmp_path, "&a [*a]")


def test_of_several_merged_mappings_the_first_wins(tmp_path: Path) -> None:
    text = "a: &a {k: 1}\nb: &b {k: 2, l: 2}\nc: {m: 3, <<: [*a, *b]}\n"
    value = read(tmp_path, text)
    assert isinstance(value, dict)
    assert value["c"] == {"k": 1, "l": 2, "m": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{<<: 1}", "expected a mapping or list of mappings for merging"),
        ("b: 1\na: 2020-13-01", "not a valid value: month must be in 1..12"),
        (
            "a: !!int b",
            "not a valid value: invalid literal for int() with base 10: 'b'",
        ),
        ("a: !!bool maybe", "not a valid value: 'maybe'"),
        ("a: !!int ''", "not a valid value: string index out of range"),
        ("a: !!timestamp x", "not a valid value: "),
        ("? [a]\n: 1", "found unhashable key"),
        ("? {a: 1, a: 2}\n: 1", "duplicate key 'a'"),
    ],
)
def test_what_makes_no_value_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert re.match(r"a\.yaml:[12]: ", str(caught.value))
    assert message in str(caught.value)


def test_two_documents_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.yaml:\d: but found another document"):
        read(tmp_path, "a: 1\n---\nb: 1\n")
