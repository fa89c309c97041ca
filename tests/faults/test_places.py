"""Commands with outputs where nothing can be written."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.identity import training_settings
from convs2s.training.run import train
from tests.faults.systems import READS_PROC, failing
from tests.support import tiny
from tests.support.checkout import Checkout
from tests.support.refusals import says


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")
def test_a_standard_output_without_room_is_one_line() -> None:
    command = [sys.executable, "-m", "convs2s", "tokenize", "--language", "en"]
    with Path("/dev/full").open("wb") as output:
        done = subprocess.run(
            command, input=b"a\n", stdout=output, stderr=subprocess.PIPE, check=False
        )
    line = "convs2s: error: the output cannot be written: No space left on device\n"
    assert done.stderr.decode() == line
    assert done.returncode == 1


def test_a_standard_output_that_fails_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system names no file, as it is open already."""
    monkeypatch.setattr("convs2s.cli.main._drop_output", lambda: None)
    monkeypatch.setattr("convs2s.publish.card.model_card", failing(errno.EIO))
    with pytest.raises(SystemExit) as ended:
        main(["card", "model.safetensors"])
    says(str(ended.value), "error: the output cannot be written: Input/output error")


def as_reader(*command: str) -> list[str]:
    """Return a command as one whom file permissions bind, also where root runs the tests."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]


@READS_PROC
def test_where_one_may_read_alone_each_command_says_so_in_one_line(
    checkout: Checkout, task: Path
) -> None:
    folder = checkout.folder
    settings = folder / "settings.json"
    settings.write_text(json.dumps(training_settings(tiny.settings())))
    train(tiny.job(task, folder / "run/model.safetensors"))
    begin = f"convs2s train {task} --settings {settings} --device cpu"
    commands = {
        f"{begin} --output {folder}/model": f"{folder}/state",
        "convs2s remove-states run --yes": "cannot be removed: Permission denied",
        "snakemake --cores 1": f"{folder}/.snakemake",
    }
    written = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in written:
        path.chmod(0o555)
    try:
        for words, said in commands.items():
            command = as_reader(sys.executable, "-m", *words.split())
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 1, done.stderr
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            assert len(errors) == 1, done.stderr
            says(errors[0], said, "Permission denied")
    finally:
        for path in written:
            path.chmod(0o755)
