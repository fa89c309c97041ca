"""The conda environments install what the tests run with."""

from pathlib import Path

import pytest
import yaml


def pinned(lines: list[str]) -> set[str]:
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


@pytest.mark.parametrize("name", ["text", "train", "score", "plot"])
def test_environment_agrees_with_the_constraints(root: Path, name: str) -> None:
    constraints = pinned((root / "constraints.txt").read_text("utf-8").splitlines())
    dependencies = yaml.safe_load((root / f"envs/{name}.yaml").read_text("utf-8"))["dependencies"]
    packages = next(each["pip"] for each in dependencies if isinstance(each, dict))
    assert packages
    assert set(packages) <= constraints


def test_every_environment_is_known(root: Path) -> None:
    assert {path.stem for path in (root / "envs").iterdir()} == {"text", "train", "score", "plot"}


def test_default_profile_holds_nothing_that_would_override_a_cluster_profile(root: Path) -> None:
    profile = yaml.safe_load((root / "profiles/default/profile.yaml").read_text("utf-8"))
    assert set(profile) == {"rerun-triggers", "rerun-incomplete"}
    for cluster in ("slurm", "generic", "kubernetes"):
        other = yaml.safe_load((root / f"profiles/{cluster}/profile.yaml").read_text("utf-8"))
        assert other["rerun-triggers"] == profile["rerun-triggers"]
        assert "cores" not in other
