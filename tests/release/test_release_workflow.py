"""What happens on a tag: the steps are those of this repository, and name what there is."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.cli.main import COMMANDS
from convs2s.config.load import load


@pytest.fixture(scope="module")
def steps(root: Path) -> list[dict[str, Any]]:
    workflow = yaml.safe_load(
        (root / ".github/workflows/release.yml").read_text("utf-8")
    )
    # YAML reads `on` as a truth value.
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    found: list[dict[str, Any]] = workflow["jobs"]["release"]["steps"]
    return found


@pytest.fixture(scope="module")
def jobs(root: Path) -> dict[str, dict[str, Any]]:
    files = sorted((root / ".github/workflows").iterdir())
    read = {
        file.stem: yaml.safe_load(file.read_text("utf-8"))["jobs"] for file in files
    }
    return {
        f"{name}.{job}": body
        for name, found in read.items()
        for job, body in found.items()
    }


def test_actions_are_those_of_the_tests_workflow(
    root: Path, steps: list[dict[str, Any]]
) -> None:
    used = {step["uses"] for step in steps if "uses" in step}
    known = re.findall(
        r"uses: (\S+)", (root / ".github/workflows/ci.yml").read_text("utf-8")
    )
    assert used
    assert used <= set(known)


def test_every_job_has_a_time_limit(jobs: dict[str, dict[str, Any]]) -> None:
    assert all(0 < job["timeout-minutes"] <= 240 for job in jobs.values())


def test_every_extra_is_installed_where_its_tests_run(
    root: Path, jobs: dict[str, dict[str, Any]]
) -> None:
    commands = " ".join(step.get("run", "") for step in jobs["ci.extras"]["steps"])
    (installed,) = re.findall(r"EXTRAS=(\S+)", commands)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    assert extras - set(installed.split(",")) <= {
        "hub",
        "report",
        "serve",
        "train",
    }  # dev and workflow hold them
    named = re.findall(r"tests/\S+", commands)
    assert [path for path in named if not (root / path).exists()] == []


def test_what_is_published_follows_the_release(jobs: dict[str, dict[str, Any]]) -> None:
    """None of them holds a password: the index trusts this workflow, the registry its token."""
    assert "permissions" not in jobs["release.release"]  # which runs others' code
    rights = {}
    for name in ("publish", "package", "image", "deposit"):
        job = jobs[f"release.{name}"]
        assert job["needs"] == "release"
        rights[name] = job.get("permissions", {})
    assert rights["publish"] == {"contents": "write"}
    assert rights["package"] == {"id-token": "write"}
    assert rights["image"] == {"contents": "read", "packages": "write"}
    assert rights["deposit"] == {}
    commands = [step.get("run", "") for step in jobs["release.image"]["steps"]]
    assert [command.split()[:2] for command in commands[-3:]] == [
        ["docker", "build"],
        ["docker", "run"],
        ["docker", "push"],
    ]


def test_every_action_is_pinned_by_its_commit(root: Path) -> None:
    """A tag can be moved to other code; its name stands beside the commit for the reader."""
    workflows = [
        file.read_text("utf-8") for file in (root / ".github/workflows").iterdir()
    ]
    used = re.findall(r"\buses:(.*)", "\n".join(workflows))
    assert len(used) == 21
    pinned = re.compile(r" [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [action for action in used if not pinned.fullmatch(action)] == []


def test_the_tests_pass_before_anything_is_published(
    steps: list[dict[str, Any]], jobs: dict[str, dict[str, Any]]
) -> None:
    commands = [step["run"] for step in steps if "run" in step]
    assert commands[-2:] == ["make test", "make release"]
    assert steps[-1]["with"] == {"name": "release", "path": "dist"}
    fetched, published = jobs["release.publish"]["steps"][-2:]
    assert fetched["with"] == {"name": "release", "path": "release"}
    assert published["run"].startswith("gh release create")
    assert published["run"].endswith("release/*")


def test_a_page_that_denies_the_release_stops_it(
    root: Path, steps: list[dict[str, Any]], tmp_path: Path
) -> None:
    (command,) = (step["run"] for step in steps if "grep" in step.get("run", ""))
    (tmp_path / "docs").mkdir()
    for page in ("CHANGELOG.md", "README.md", "docs/publishing.md"):
        (tmp_path / page).write_bytes((root / page).read_bytes())
    changes = tmp_path / "CHANGELOG.md"
    for text, code in (
        (f"{changes.read_text('utf-8')}Not released yet.\n", 1),
        ("1.0\n", 0),
    ):
        changes.write_text(text, "utf-8")
        assert (
            subprocess.run(
                ["bash", "-ec", command], cwd=tmp_path, check=False
            ).returncode
            == code
        )


def test_the_script_names_commands_and_tasks_that_there_are(root: Path) -> None:
    script = (root / ".ci/release").read_text("utf-8")
    assert set(re.findall(r"^ *convs2s (\S+)", script, re.MULTILINE)) <= set(COMMANDS)
    stated = re.search(
        r"^release: TASKS := (.*)$", (root / "Makefile").read_text("utf-8"), re.M
    )
    assert stated
    settings = load(root)
    for task in stated[1].split():
        assert settings.tasks[task].headline_runs()
