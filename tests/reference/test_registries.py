"""The values of the configuration that comes with the project, against what others state."""

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.settings import Settings

LICENSES = {  # what the registry says -> what it is called here
    "research": "LicenseRef-WMT",
    "see upstream": "LicenseRef-WMT",
    "free (European Parliament)": "LicenseRef-Europarl",
    "non-commercial research": "LicenseRef-Multi30k",
    "BSD/MIT, see upstream": "MIT",  # fairseq's own, which holds for its models too
}


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
            ours = getattr(entry, name)
            assert fields[name] == ("?" if ours is None else str(ours)), fields["url"]


def test_members_are_in_the_archives_of_the_mirror(
    settings: Settings, shared: Path
) -> None:
    members: dict[Path, set[str]] = {}
    for task in settings.tasks.values():
        for file in map(parse_file_reference, task.references()):
            archive = shared / "mirror" / file.location.partition("://")[2]
            if file.member and archive.is_file():
                members.setdefault(archive, set()).add(file.member)
    assert len(members) >= 8
    for archive, named in members.items():
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as opened:
                found = opened.namelist()
        else:
            with tarfile.open(archive) as opened_tar:
                found = opened_tar.getnames()
        assert named <= set(found), archive


# Also the speeds of section 5.5, which stand in the text below table 5.
PRINTED = "bleu seconds ppl rg1 rg2 rgl all_five_layers single_layer"


def test_printed_values_are_the_papers(settings: Settings, shared: Path) -> None:
    facts = yaml.safe_load((shared / "spec/paper_tables.yaml").read_text("utf-8"))
    for number in range(1, 9):
        rows = settings.paper[f"table{number}"].rows
        values = [value for row in rows for value in row.paper.values()]
        ours = [float(value) for value in values if value is not None]
        assert sorted(ours) == sorted(printed(facts[f"table{number}"]))


def printed(part: Any) -> Iterator[float]:
    """Yield the printed values of a table in the file of facts."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from [float(value)] if key in PRINTED.split() else printed(value)
    elif isinstance(part, list):
        for item in part:
            yield from [item] if isinstance(item, float) else printed(item)
