"""One version, stated once; what else names it is in step."""

import re
import tomllib
from pathlib import Path

import yaml

from convs2s import __version__
from tests.support.wheel import Release


def test_the_wheel_has_the_packages_version(release: Release) -> None:
    assert release.metadata()["Version"] == __version__
    assert release.wheel.name == f"convs2s-{__version__}-py3-none-any.whl"
    assert release.sdist.name == f"convs2s-{__version__}.tar.gz"


def test_the_project_states_no_version_of_its_own(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "convs2s.__version__"
    }


def test_the_citation_is_of_this_version(root: Path) -> None:
    citation = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__


def test_the_newest_change_is_of_this_version(root: Path) -> None:
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == __version__
