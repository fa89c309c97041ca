"""The values of the configuration that comes with the project, against what others state."""

import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml
from packaging.licenses import canonicalize_license_expression

from convs2s.config.corpus import PREPARATIONS, PreparationRecipe
from convs2s.config.file_reference import parse_file_reference
from convs2s.config.settings import Settings


def test_the_preparations_are_those_of_the_text_package() -> None:
    assert set(get_args(PreparationRecipe)) == set(PREPARATIONS)


def references(settings: Settings) -> set[str]:
    """Return every file that a task names."""
    return {one for task in settings.tasks.values() for one in task.references()}


def test_every_address_of_a_corpus_is_in_the_list_of_downloads(
    settings: Settings,
) -> None:
    addresses = {parse_file_reference(one).location for one in references(settings)}
    assert {one for one in addresses if one.startswith("http")} <= set(
        settings.downloads
    )


LICENSES = {  # what the registry says -> what it is called here
    "research": "LicenseRef-WMT",
    "see upstream": "LicenseRef-WMT",
    "free (European Parliament)": "LicenseRef-Europarl",
    "non-commercial research": "LicenseRef-Multi30k",
    "BSD/MIT, see upstream": "MIT",  # fairseq's own, which holds for its models too
}


def test_licenses_are_named_and_the_page_explains_those_without_an_identifier(
    settings: Settings, root: Path
) -> None:
    named = {str(entry.licence) for entry in settings.downloads.values()}
    assert {canonicalize_license_expression(name) for name in named} == named
    page = (root / "docs/data.md").read_text("utf-8")
    own = {name for name in named if name.startswith("LicenseRef-")}
    assert set(re.findall(r"^\| `(LicenseRef-\w+)` \|", page, re.MULTILINE)) == own


def test_the_page_counts_the_files_without_a_checksum(
    settings: Settings, root: Path
) -> None:
    entries = settings.downloads.values()
    without = [entry for entry in entries if not entry.sha256]
    page = (root / "docs/data.md").read_text("utf-8")
    known = len(entries) - len(without)
    assert f"{known} of the {len(entries)} listed files have a SHA-256" in page
    assert f"For the other {len(without)} files, no" in page
    assert sum(entry.md5 is not None for entry in without) == 4


def test_the_list_of_downloads_has_what_registries_state(
    settings: Settings, shared: Path
) -> None:
    rows = (shared / "spec/archives.tsv").read_text("utf-8").splitlines()
    header, *stated = [row.split("\t") for row in rows if not row.startswith("#")]
    assert len(stated) >= 30
    for row in stated:
        fields = dict(zip(header, row, strict=True))
        entry = settings.downloads[fields["url"]]
        assert entry.licence == LICENSES[fields["licence"]]
        for name in ("bytes", "sha256", "md5"):
            known = None if fields[name] == "?" else fields[name]
            ours = getattr(entry, name)
            assert (None if ours is None else str(ours)) == known, fields["url"]


def test_members_are_in_the_archives_of_the_mirror(
    settings: Settings, shared: Path
) -> None:
    members: dict[Path, set[str]] = {}
    for file in map(parse_file_reference, references(settings)):
        archive = shared / "mirror" / file.location.partition("://")[2]
        if file.member and archive.is_file():
            members.setdefault(archive, set()).add(file.member)
    assert len(members) >= 8
    for archive, named in members.items():
        assert named <= members_of(archive), archive


def members_of(archive: Path) -> set[str]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as opened:
            return set(opened.namelist())
    with tarfile.open(archive) as opened_tar:
        return set(opened_tar.getnames())


def test_printed_values_are_the_papers(settings: Settings, shared: Path) -> None:
    facts = yaml.safe_load(
        (shared / "spec/paper_tables.yaml").read_text(encoding="utf-8")
    )
    for name in (
        "table1",
        "table2",
        "table3",
        "table4",
        "table5",
        "table6",
        "table7",
        "table8",
    ):
        values = [
            value for row in settings.paper[name].rows for value in row.paper.values()
        ]
        ours = [float(value) for value in values if value is not None]
        assert sorted(ours) == sorted(printed(facts[name])), name


# Also the speeds of section 5.5, which stand in the text below table 5.
PRINTED = (
    "bleu",
    "seconds",
    "ppl",
    "rg1",
    "rg2",
    "rgl",
    "all_five_layers",
    "single_layer",
)


def printed(part: Any) -> Iterator[float]:
    """Yield the printed values of a table in the file of facts."""
    if isinstance(part, list):
        for item in part:
            yield from [float(item)] if isinstance(item, float) else printed(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in PRINTED:
                yield float(value)
            else:
                yield from printed(value)
