"""The list of downloads: every address of a corpus, and what docs/data.md says of it."""

import re
from pathlib import Path

from packaging.licenses import canonicalize_license_expression

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.settings import Settings


def test_every_address_of_a_corpus_is_in_the_list_of_downloads(
    settings: Settings,
) -> None:
    references = [one for task in settings.tasks.values() for one in task.references()]
    addresses = {parse_file_reference(one).location for one in references}
    fetched = {one for one in addresses if one.startswith("http")}
    assert len(fetched) > 20
    assert fetched <= set(settings.downloads)


def test_the_page_explains_licenses_and_counts_the_files_without_a_checksum(
    settings: Settings, root: Path
) -> None:
    entries = settings.downloads.values()
    named = {str(entry.licence) for entry in entries}
    assert {canonicalize_license_expression(name) for name in named} == named
    page = (root / "docs/data.md").read_text("utf-8")
    own = {name for name in named if name.startswith("LicenseRef-")}
    assert set(re.findall(r"^\| `(LicenseRef-\w+)` \|", page, re.MULTILINE)) == own
    without = [entry for entry in entries if not entry.sha256]
    known = len(entries) - len(without)
    assert f"{known} of the {len(entries)} listed files have a SHA-256" in page
    assert f"For the other {len(without)} files, no" in page
    assert sum(entry.md5 is not None for entry in without) == 4
