"""Where a file comes from, as the tasks and the list of downloads say together."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.config.file_reference import known_download
from convs2s.config.load import load
from convs2s.config.messages import check_known
from convs2s.config.settings import Settings
from convs2s.errors import UserError

PLACE = "www.statmt.org/wmt14/test-full.tgz"
MD5 = "a8cd784e006feb32ac6f3d9ec7eb389a"


def with_urls(root: Path, *urls: str) -> Settings:
    """Return the configuration with a test set of these alone in the demo's task, and no other."""
    pairs = [{"source": url, "target": "b"} for url in urls]
    tests = {"demo_en_fr": {"corpus": {"tests": {"test": pairs}}}}
    found = load(root, {"overrides": {"tasks": tests}})
    return replace(found, tasks={"demo_en_fr": found.tasks["demo_en_fr"]})


@pytest.mark.parametrize("schemes", [["http"], ["https"], ["http", "https"]])
def test_a_known_file_has_its_checksum_by_either_scheme(
    root: Path, schemes: list[str]
) -> None:
    settings = with_urls(root, *(f"{scheme}://{PLACE}#a" for scheme in schemes))
    source = settings.downloads_by_place()[PLACE]
    known = source.url, source.bytes, source.sha256, source.md5
    assert known == (f"http://{PLACE}", None, None, MD5)


def test_its_checksum_is_known_by_either_address_wherever_it_is_asked_for(
    root: Path,
) -> None:
    known = load(root).downloads
    of_both = [
        known_download(f"{scheme}://{PLACE}", known) for scheme in ("http", "https")
    ]
    assert of_both[0] is of_both[1] is not None


def test_of_two_addresses_of_an_unknown_file_https_counts(root: Path) -> None:
    settings = with_urls(
        root, *(f"{scheme}://host/{n}" for n in "abcd" for scheme in ("https", "http"))
    )
    found = {
        place: source.url for place, source in settings.downloads_by_place().items()
    }
    assert {f"host/{n}": f"https://host/{n}" for n in "abcd"}.items() <= found.items()


def test_a_file_that_no_task_names_is_unknown(root: Path) -> None:
    sources = with_urls(root, f"http://{PLACE}#a").downloads_by_place()
    place = PLACE.replace("full", "fill")
    said = f"downloads/{place}: unknown download '{place}'; did you mean '{PLACE}'?"
    with pytest.raises(UserError, match=f"^{re.escape(said)}$"):
        check_known(f"downloads/{place}", "download", place, sources)
