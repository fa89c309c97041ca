"""The values of the configuration that comes with the project, against what others state."""

from pathlib import Path

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.settings import Settings
from convs2s.download.archives import member_names

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
        assert named <= set(member_names(archive)), archive
