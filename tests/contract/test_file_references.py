"""How files are named, and where they lie."""

from pathlib import Path

import pytest

from convs2s.config.file_reference import (
    files_by_location,
    local_path,
    masked,
    parse_file_reference,
)
from tests.support.refusals import refusal, rows

URL = "https://data.example/a.tgz"

REFERENCES = """
data/my.en => => data/my.en
/data/my.tgz#a/b.en => a/b.en => /data/my.tgz
https://data.example/a.tgz#a/b.en => a/b.en => d/data.example/a.tgz
http://h:8080/a.tgz => => d/h:8080/a.tgz
https://h/%2e%2e/a.tgz => => d/h/%2e%2e/a.tgz
demo://en_fr/train.en => => d/demo/en_fr/train.en
titles://a/train.title => => d/titles/a/train.title
a.jsonl.gz#text[0] => text[0] => a.jsonl.gz
"""


def test_references() -> None:
    for reference, member, path in rows(REFERENCES):
        parsed = parse_file_reference(reference)
        assert (parsed.member or "") == member
        assert parsed.is_url == ("://" in reference), reference
        assert parsed.path(Path("d")) == Path(path)
    for bad in ("", "#a", "a.tgz#", "ftp://h/a", "s3://bucket/a#b", "a.zip#b.JSONL"):
        assert refusal(parse_file_reference, bad)


def test_files_are_of_locations_in_the_order_that_names_them_first() -> None:
    references = ["b.tgz#c.en", "b.tgz#c.fr", URL, "a.en", f"{URL}#d"]
    found = files_by_location(references, ["x/b.tgz", "y/a.tgz", "z"])
    assert found == {"b.tgz": Path("x/b.tgz"), URL: Path("y/a.tgz"), "a.en": Path("z")}
    with pytest.raises(ValueError, match="shorter"):
        files_by_location(references, ["x/b.tgz"])


# An @ after a port may end a password, in a path of other addresses it may not.
MASKED = """
https://me:secret@host/m => https://host/m
https://secret@host/m => https://host/m
https://me:se/cr?e#t@host/m => https://host/m
https://me:se cret@host/m => https://host/m
https://me:se@cret@host/m => https://host/m
https:/me:secret@host/m => https:/host/m
https://h/m?secret then https://n/?secret => https://h/m?*** then https://n/?***
https://host:8080/m/a@2.tgz#member => https://2.tgz#member
https://host/m/a@2.tgz#member => https://host/m/a@2.tgz#member
what? me@host => what? me@host
"""


def test_a_password_is_masked() -> None:
    for text, shown in rows(MASKED):
        assert masked(text) == shown
    # A refused address does not show its password.
    for address in ("me:secret@h/a", "me:se/secret@h/a", "h/a?token=secret"):
        assert "secret" not in refusal(local_path, f"https://{address}", Path())
        assert "secret" not in refusal(parse_file_reference, f"ftp://{address}")
