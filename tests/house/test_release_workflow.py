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
from tests.house.test_release_hashes import pinned
from tests.support.refusals import rows

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


def test_every_extra_is_installed_where_its_tests_run(
    root: Path, jobs: dict[str, Job]
) -> None:
    typed = " ".join(commands(jobs["ci.extras"]))
    (installed,) = re.findall(r"EXTRAS=(\S+)", typed)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    of_dev_and_workflow = {"documents", "hub", "report", "train"}
    assert extras - set(installed.split(",")) <= of_dev_and_workflow
    named = re.findall(r"tests/\S+", typed)
    assert [path for path in named if not (root / path).exists()] == []


def test_what_is_published_was_tested_and_built_by_a_job_without_rights(
    jobs: dict[str, Job],
) -> None:
    """No job holds a password: the index trusts this workflow, the registry its token."""
    assert all(0 < job["timeout-minutes"] <= 240 for job in jobs.values())
    release = jobs["release.release"]
    assert "permissions" not in release  # it runs others' code
    built = [".ci/install", "make test", "make release"]
    assert commands(release)[-3:] == built
    assert release["steps"][-1]["with"] == {"name": "release", "path": "dist"}
    for name in ("publish", "attest", "package", "image", "deposit"):
        job = jobs[f"release.{name}"]
        assert job["needs"] == "release"
        rights = job.get("permissions", {})
        assert (rights.get("contents") == "write") == (name == "publish")
    published = commands(jobs["release.publish"])[-1]
    assert re.fullmatch(r"gh release create.* release/\*", published)
    _, attested = jobs["release.attest"]["steps"]
    assert attested["with"] == {"subject-path": "release/*"}


TAGS = """
v1.0.0 => true
v1.0.post1 => true
v1.0rc1 => false
v1.0.dev3 => false
v1.0+local => false
"""


def test_a_pre_release_is_known_by_its_tag_and_the_latest_of_nothing(
    jobs: dict[str, Job], tmp_path: Path
) -> None:
    steps = jobs["release.release"]["steps"]
    (kind,) = (step["run"] for step in steps if step.get("id") == "kind")
    for tag, is_final in rows(TAGS):
        output = tmp_path / tag
        variables = {"GITHUB_REF_NAME": tag, "GITHUB_OUTPUT": str(output)}
        subprocess.run(["bash", "-ec", kind], env=variables, check=True)
        assert output.read_text() == f"is_final={is_final}\n"
    condition = "needs.release.outputs.is_final == 'true'"
    assert jobs["release.deposit"]["if"] == condition
    steps = jobs["release.image"]["steps"]
    (tagged,) = (step for step in steps if ":latest" in step.get("run", ""))
    assert tagged["if"] == condition
    assert '--prerelease="$' in commands(jobs["release.publish"])[-1]


def test_every_action_is_pinned_by_its_commit(root: Path) -> None:
    """A tag can be moved to other code; its name stands beside the commit for the reader."""
    files = (root / ".github/workflows").iterdir()
    text = "\n".join(file.read_text("utf-8") for file in files)
    used = re.findall(r"\buses:(.*)", text)
    assert len(used) > 20
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
    version = {"attr": "convs2s.__version__"}
    assert project["tool"]["setuptools"]["dynamic"]["version"] == version
    citation = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == __version__


def test_a_release_is_built_by_pinned_versions_of_commands_and_tasks_that_there_are(
    root: Path, settings: Settings
) -> None:
    script = (root / ".ci/release").read_text("utf-8")
    (names,) = re.findall(r"pip install --quiet -c constraints.txt (.*)", script)
    assert set(names.split()) <= pinned(root).keys()
    assert "python -m build --no-isolation " in script
    assert set(re.findall(r"^ *convs2s (\S+)", script, re.MULTILINE)) <= set(COMMANDS)
    makefile = (root / "Makefile").read_text("utf-8")
    (stated,) = re.findall(r"^release: TASKS := (.*)$", makefile, re.MULTILINE)
    for task in stated.split():
        assert settings.tasks[task].headline_runs()
