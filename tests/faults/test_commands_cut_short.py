"""Commands that are cut short: by Ctrl-C, or because they cannot write their outputs."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.identity import training_settings
from convs2s.files.text import write_lines
from convs2s.training.run import train
from tests.faults.systems import READS_PROC, failing
from tests.support import tiny
from tests.support.checkout import Checkout
from tests.support.processes import wait_for
from tests.support.refusals import says

# ---- Ctrl-C: SIGINT to the process group ----


def interrupted(
    command: str, is_time: Callable[[], bool], sent: signal.Signals = signal.SIGINT
) -> str:
    """Run a command and signal its group when it is time; return the last that it says."""
    process = subprocess.Popen(
        [sys.executable, "-m", "convs2s", *command.split(), "--device", "cpu"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: is_time() or process.poll() is not None)
    assert process.poll() is None
    os.killpg(process.pid, sent)
    said = process.communicate(timeout=300)[1]
    assert "Traceback" not in said
    assert process.returncode == 75
    return said.replace("\r", "\n").splitlines()[-1]


def test_a_training_saves_and_says_how_to_go_on(task: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    endless = tiny.settings(maximum_epochs=9999, learning_rate=0.001)
    settings.write_text(json.dumps(training_settings(endless)))
    history = tmp_path / "history.jsonl"
    said = interrupted(
        f"train {task} --settings {settings} --output {tmp_path}/m.st --threads 1",
        lambda: history.exists() and history.read_text().count("\n") > 0,
    )
    stopped = "training is not finished: SIGINT was received; saved in epoch "
    assert said.startswith(f"convs2s: {stopped}")
    assert said.endswith(": rerun the same command to resume")
    rows = [json.loads(line) for line in history.open()]
    assert [row["epoch"] for row in rows] == list(range(1, len(rows) + 1))
    kept = (tmp_path / "state/train.log").read_text()
    assert f"error: {said.removeprefix('convs2s: ')}\n" in kept


@pytest.mark.parametrize(("workers", "sent"), [(1, signal.SIGINT), (2, signal.SIGTERM)])
def test_a_translation_says_what_is_written_and_goes_on(
    model: Path, tmp_path: Path, workers: int, sent: signal.Signals
) -> None:
    write_lines(tmp_path / "in", [" ".join(tiny.WORDS[:8])] * 2000)
    state = tmp_path / "out.part.json"

    def has_lines() -> bool:
        return state.exists() and json.loads(state.read_bytes())["lines"] > 0

    said = interrupted(
        f"translate {model} --input {tmp_path}/in --output {tmp_path}/out "
        f"--workers {workers} --threads 2 --batch-sentences 1",
        has_lines,
        sent,
    )
    written = rf"{sent.name} was received; (\d+) of 2000 lines are in {tmp_path}/out\.p"
    stated = re.search(written, said)
    assert stated is not None, said
    assert int(stated[1]) == json.loads(state.read_bytes())["lines"] > 0


def test_any_other_command_says_in_a_line_that_it_is_interrupted_or_cannot_print(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an output that fails, the system names no file, as it is open already."""

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("convs2s.publish.card.model_card", pressed)
    with pytest.raises(SystemExit) as ended:
        main(["card", "model.safetensors"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "convs2s: interrupted\n"
    monkeypatch.setattr("convs2s.cli.main._drop_output", lambda: None)
    monkeypatch.setattr("convs2s.publish.card.model_card", failing(errno.EIO))
    with pytest.raises(SystemExit) as ended:
        main(["card", "model.safetensors"])
    says(str(ended.value), "error: the output cannot be written: Input/output error")


# ---- outputs where nothing can be written ----


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
    # File permissions do not bind root.
    bounds = "--bounding-set=-dac_override,-dac_read_search"
    as_reader = ["setpriv", bounds] if os.geteuid() == 0 else []
    written = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in written:
        path.chmod(0o555)
    try:
        for words, said in commands.items():
            command = [*as_reader, sys.executable, "-m", *words.split()]
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
