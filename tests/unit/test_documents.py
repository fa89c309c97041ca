"""Commands of ``convs2s`` on the pages run as they stand there, on files of the names they give."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.files import write_lines

BLOCK = re.compile(r"(?:^    \S.*\n(?:^ {4,}\S.*\n)*)", re.MULTILINE)

NOT_RUN = {
    "configuration.md": "generated, without commands of its own",
    "install.md": "installs: tests/release",
    "ledger.md": "writes the page of results: tests/house/test_results_page.py",
    "mirror.md": "writes a mirror: tests/unit/mirror",
    "operations.md": "of a folder of results: tests/unit/training/test_finished_states.py",
    "publishing.md": "of a folder of results: tests/unit/publish",
    "released_models.md": "needs the authors' models: tests/golden",
    "training.md": "measures a machine for seconds, or trains on several: tests/unit/training",
    "vocabulary_selection.md": "its command is left open at the end",
    "own_workflow.md": "is of another workflow: tests/workflow/test_deployment.py",
}
"""Pages whose commands of ``convs2s`` take more than seconds, and which tests run them."""

TEXTS = (
    "news.en test.en test.fr raw.en words.en translations.fr baseline.fr system.fr titles.txt "
    "outputs.txt r1.txt r2.txt test.bpe.en"
)
"""Files that the commands read."""

LINES = [f"w{number} w2 ." for number in range(1, 5)]


def blocks_to_run() -> list[tuple[str, str]]:
    """Return each block in which every line is a command of ``convs2s``, and its page."""
    pages = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
    found = [(page.name, block) for page in pages for block in BLOCK.findall(page.read_text())]
    return [
        (page, block)
        for page, block in found
        if page not in NOT_RUN
        and re.match(r"^    (?:convs2s|echo) ", block)
        and "TASK" not in block
    ]


@pytest.fixture(scope="module")
def files(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the commands read."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copy(model, folder / "model.safetensors")
    for name in (
        "news.en",
        "test.en",
        "test.fr",
        "raw.en",
        "words.en",
        "translations.fr",
        "r1.txt",
    ):
        write_lines(folder / name, LINES)
    for name in ("baseline.fr", "system.fr", "titles.txt", "outputs.txt", "r2.txt", "test.bpe.en"):
        write_lines(folder / name, LINES)
    write_lines(
        folder / "test.nbest", [f"{n} ||| {LINES[n]} ||| Other= -1 ||| -1" for n in range(4)]
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), blocks_to_run())
def test_a_block_of_commands_runs(files: Path, tmp_path: Path, page: str, block: str) -> None:
    folder = tmp_path / "here"
    shutil.copytree(files, folder)
    (folder / "bin").mkdir()
    program = folder / "bin/convs2s"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m convs2s "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{page}: {done.stderr}"


def test_the_pages_have_such_blocks(root: Path) -> None:
    assert len(blocks_to_run()) >= 6
    assert all((root / "docs" / page).is_file() for page in NOT_RUN)
