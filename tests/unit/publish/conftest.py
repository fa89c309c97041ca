"""A results folder as the workflow leaves it."""

import os
import shutil
from pathlib import Path

import pytest

from convs2s.layout import TaskFolder
from tests.support.tiny_results import write_results


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a workflow ran, with its ``results/tiny``."""
    folder, before = tmp_path_factory.mktemp("ran"), Path.cwd()
    os.chdir(folder)  # manifests hold paths as the workflow names them
    try:
        write_results(TaskFolder("results/tiny"))
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def results(ran: Path, tmp_path: Path) -> Path:
    """A copy of that ``results/tiny``, to be changed."""
    shutil.copytree(ran, tmp_path / "ran")
    return tmp_path / "ran/results/tiny"
