"""Two workers, of which one vanishes: the others end, and the same command resumes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convs2s.config.identity import training_settings
from convs2s.files.checksums import sha256
from tests.support import tiny
from tests.support.processes import children, environment, listening
from tests.support.together import train_together

Process = subprocess.Popen[str]


def states(folder: Path) -> list[int]:
    """When the states of a training were written."""
    return [path.stat().st_mtime_ns for path in folder.glob("*/last.safetensors")]


def wait_for_a_state(process: Process, folder: Path) -> None:
    """Wait until the training has written a state of its own."""
    before = states(folder)
    while process.poll() is None:
        if states(folder) > before:
            return
        time.sleep(0.01)
    raise AssertionError(process.communicate()[1])


def workers_of(process: Process) -> dict[str, int]:
    """The workers of a launcher: rank -> process."""
    found = {child: environment(child) for child in children(process.pid)}
    return {own["RANK"]: child for child, own in found.items() if "RANK" in own}


LAUNCHED = """
import sys
from convs2s.cli.main import main
from convs2s.training import heartbeat
heartbeat.SECONDS_BETWEEN_LOOKS = 0.2
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_frozen_worker_is_killed_and_the_others_end(tmp_path: Path) -> None:
    task = tiny.prepare(tmp_path / "task")
    settings = tiny.settings(maximum_epochs=1000)
    (tmp_path / "settings.json").write_text(json.dumps(training_settings(settings)))
    command = [sys.executable, "-c", LAUNCHED, "train", str(task), "--device", "cpu"]
    command += [
        "--settings",
        str(tmp_path / "settings.json"),
        "--threads",
        "1",
        "--workers",
        "2",
    ]
    command += [
        "--output",
        str(tmp_path / "model.safetensors"),
        "--checkpoint-minutes",
        "1e-9",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for_a_state(process, tmp_path / "state")
    frozen = workers_of(process)["1"]
    os.kill(frozen, signal.SIGSTOP)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1, said
    assert (
        f"worker process {frozen} is frozen (no sign of life for 4.8 s) and is killed\n"
        in said
    )
    assert (
        "worker 1 was ended by SIGKILL, and the others with it; the last state is intact"
        in said
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="Linux tells who listens"
)
def test_a_killed_worker_and_a_signal_leave_a_state_to_go_on_from(
    tmp_path: Path,
) -> None:
    task = tiny.prepare(tmp_path / "task")
    settings = tiny.settings(maximum_epochs=15, checkpoint_minutes=1e-9)
    (tmp_path / "settings.json").write_text(json.dumps(training_settings(settings)))
    jobs = [
        tiny.job(task, tmp_path / name / "model.safetensors", settings)
        for name in ("disturbed", "undisturbed")
    ]
    jobs[0].output.parent.mkdir()
    command = [sys.executable, "-m", "convs2s", "train", str(task), "--device", "cpu"]
    command += [
        "--settings",
        str(tmp_path / "settings.json"),
        "--output",
        str(jobs[0].output),
    ]
    command += ["--threads", "1", "--workers", "2", "--checkpoint-minutes", "1e-9"]

    for sent, code, says in (
        (signal.SIGKILL, 1, "worker 1 was ended by SIGKILL, and the others with it"),
        (
            signal.SIGHUP,
            75,
            "training is not finished: SIGHUP was received; saved in epoch",
        ),
    ):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        wait_for_a_state(process, jobs[0].output.parent / "state")
        workers = workers_of(process)
        sockets = [listening(each) for each in (process.pid, *workers.values())]
        victim = workers["1"] if sent == signal.SIGKILL else process.pid
        subprocess.run(["kill", f"-{sent.value}", str(victim)], check=True)
        said = process.communicate(timeout=120)[1]
        assert process.returncode == code, said
        assert says in said
        assert ": 2 workers by gloo on the CPU, fp32\n" in said
        assert not jobs[0].output.exists()
        assert [far for _, far in sockets] == [0, 0, 0]  # no server for the network
        assert sum(near for near, _ in sockets) > 0
    for number, one in enumerate(jobs):
        train_together(tmp_path / f"meeting{number}", 2, one)
    assert sha256(jobs[0].output) == sha256(jobs[1].output)
