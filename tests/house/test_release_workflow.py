"""What happens on a tag: the steps are those of this repository, and name what there is."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s import __version__
from convs2s.cli.main import COMMANDS
from convs2s.config.settings import Settings

Job = dict[str, Any]


@pytest.fixture(scope="module")
def jobs(root: Path) -> dict[str, Job]:
    """All jobs, as FILE.JOB."""
    found = {}
    for file in (root / ".github/workflows").iterdir():
        for name, job in yaml.safe_load(file.read_text("utf-8"))["jobs"].items():
            found[f"{file.stem}.{name}"] = job
    return found


def commands(job: Job) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_every_job_has_a_time_limit(jobs: dict[str, Job]) -> None:
    assert all(0 < job["timeout-minutes"] <= 240 for job in jobs.values())


def test_every_extra_is_installed_where_its_tests_run(
    root: Path, jobs: dict[str, Job]
) -> None:
    typed = " ".join(commands(jobs["ci.extras"]))
    (installed,) = re.findall(r"EXTRAS=(\S+)", typed)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    of_dev_and_workflow = {"hub", "report", "serve", "train"}
    assert extras - set(installed.split(",")) <= of_dev_and_workflow
    named = re.findall(r"tests/\S+", typed)
    assert [path for path in named if not (root / path).exists()] == []


def test_what_is_published_follows_the_release(jobs: dict[str, Job]) -> None:
    """None of them holds a password: the index trusts this workflow, the registry its token."""
    assert "permissions" not in jobs["release.release"]  # which runs others' code
    for name, rights in {
        "publish": {"contents": "write"},
        "package": {"id-token": "write"},
        "image": {"contents": "read", "packages": "write"},
        "deposit": {},
    }.items():
        job = jobs[f"release.{name}"]
        assert job["needs"] == "release"
        assert job.get("permissions", {}) == rights
    last = [command.split()[:2] for command in commands(jobs["release.image"])[-3:]]
    assert last == [["docker", "build"], ["docker", "run"], ["docker", "push"]]


def test_the_tests_pass_before_anything_is_published(
    root: Path, jobs: dict[str, Job]
) -> None:
    text = (root / ".github/workflows/release.yml").read_text("utf-8")
    # YAML reads `on` as a truth value.
    assert yaml.safe_load(text)[True] == {"push": {"tags": ["v*"]}}
    release = jobs["release.release"]
    assert commands(release)[-2:] == ["make test", "make release"]
    assert release["steps"][-1]["with"] == {"name": "release", "path": "dist"}
    fetched, published = jobs["release.publish"]["steps"][-2:]
    assert fetched["with"] == {"name": "release", "path": "release"}
    assert re.fullmatch(r"gh release create.* release/\*", published["run"], re.DOTALL)


def test_every_action_is_pinned_by_its_commit(root: Path) -> None:
    """A tag can be moved to other code; its name stands beside the commit for the reader."""
    files = (root / ".github/workflows").iterdir()
    text = "\n".join(file.read_text("utf-8") for file in files)
    used = re.findall(r"\buses:(.*)", text)
    assert len(used) == 21
    pinned = re.compile(r" [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [action for action in used if not pinned.fullmatch(action)] == []


def test_a_page_that_denies_the_release_stops_it(
    root: Path, jobs: dict[str, Job], tmp_path: Path
) -> None:
    (command,) = (one for one in commands(jobs["release.release"]) if "grep" in one)
    (tmp_path / "docs").mkdir()
    for page in ("README.md", "docs/publishing.md"):
        (tmp_path / page).write_bytes((root / page).read_bytes())
    for text, code in (("Not released yet.\n", 1), ("1.0\n", 0)):
        (tmp_path / "CHANGELOG.md").write_text(text)
        done = subprocess.run(["bash", "-ec", command], cwd=tmp_path, check=False)
        assert done.returncode == code


def test_what_names_a_version_names_this_one(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    version = {"attr": "convs2s.__version__"}
    assert project["tool"]["setuptools"]["dynamic"]["version"] == version
    citation = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == __version__


def test_the_script_names_commands_and_tasks_that_there_are(
    root: Path, settings: Settings
) -> None:
    script = (root / ".ci/release").read_text("utf-8")
    assert set(re.findall(r"^ *convs2s (\S+)", script, re.MULTILINE)) <= set(COMMANDS)
    makefile = (root / "Makefile").read_text("utf-8")
    (stated,) = re.findall(r"^release: TASKS := (.*)$", makefile, re.MULTILINE)
    for task in stated.split():
        assert settings.tasks[task].headline_runs()
