"""What stands beside a number."""

from pathlib import Path

import pytest

from convs2s import __version__
from convs2s.files.checksums import sha256
from convs2s.manifest import revision, run_manifest


def test_a_run_names_the_bytes_that_it_read(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.write_text(path.name)
    found = run_manifest(map(str, paths), seed=3)
    assert found["sha256"] == {str(path): sha256(path) for path in paths}
    assert (found["seed"], found["convs2s"]) == (3, __version__)


def test_where_there_is_no_git_the_revision_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision(tmp_path) is None
