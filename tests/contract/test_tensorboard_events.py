"""TensorBoard's event files: what they hold, over kills too."""

import errno
import sys
from collections import Counter
from pathlib import Path

import pytest

from convs2s.config.identity import recipe_identity, training_settings
from convs2s.errors import UserError
from convs2s.training import state_folder
from convs2s.training.history import EpochRecord
from convs2s.training.progress import EVENTS, Watch
from convs2s.training.run import train
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.state_folder import ProgressFile
from tests.support import tiny
from tests.support.interrupted import train_until


def scalars(folder: Path) -> list[tuple[str, int, float]]:
    """Every scalar that TensorBoard shows of a folder: its tag, step and value."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    shown = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    shown.Reload()
    found = []
    for tag in shown.Tags()["scalars"]:
        found += [(tag, event.step, event.value) for event in shown.Scalars(tag)]
    return found


def test_a_resumed_training_has_each_step_once(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    # Each update is noted.
    monkeypatch.setattr(state_folder, "SECONDS_BETWEEN_NOTES", 0.0)
    one = tiny.job(
        task, tmp_path / "run/model.safetensors", tiny.settings(tensorboard=True)
    )
    train_until(one, epoch=1)
    (last,) = tmp_path.rglob("last.safetensors")
    saved = last.read_bytes()
    train_until(one, epoch=2)
    last.write_bytes(saved)  # as if killed before the second epoch's state was written
    train(one)
    found = scalars(last.parent / EVENTS)
    assert max(Counter((tag, step) for tag, step, _ in found).values()) == 1
    assert [step for tag, step, _ in found if tag == "epoch/valid_perplexity"] == [
        10,
        20,
        30,
    ]
    assert {tag for tag, _, _ in found} >= {
        "running/loss",
        "running/gradient",
        "epoch/train_loss",
    }
    # The update that a training resumes after is shown by its epoch.
    running = {step for tag, step, _ in found if tag == "running/loss"}
    assert running | {10} == set(range(1, 31))


def test_a_full_disk_ends_no_training(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    begin, refused = Watch.begin, []

    def refuse(event: object) -> None:
        refused.append(event)
        raise OSError(errno.ENOSPC, "No space left on device")

    def begin_on_a_disk_that_fills_up(watch: Watch, state: TrainerState) -> None:
        begin(watch, state)
        monkeypatch.setattr(watch._writer.file_writer.event_writer, "add_event", refuse)

    monkeypatch.setattr(Watch, "begin", begin_on_a_disk_that_fills_up)
    one = tiny.job(
        task, tmp_path / "run/model.safetensors", tiny.settings(tensorboard=True)
    )
    train(one)
    assert one.output.is_file()
    assert refused


def test_an_epoch_whose_events_a_kill_forestalled_gets_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    record = EpochRecord(1, 30, 0.25, 2.0, 2.0, 7.389, 100, 50)
    for _ in range(2):
        watch = Watch(ProgressFile(tmp_path), events=tmp_path / "events")
        watch.begin(TrainerState(Schedule(0.25), 0.25, 2, updates=30, history=[record]))
    found = scalars(tmp_path / "events")
    assert ("epoch/valid_loss", 30, 2.0) in found
    assert len(found) == len(set(found)) == 5


def test_within_an_epoch_what_a_kill_undid_is_not_shown(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    for loss in (2.5, 3.5):
        watch = Watch(ProgressFile(tmp_path), events=tmp_path / "events")
        watch.begin(TrainerState(Schedule(0.25), 0.25, 1, batch=1, updates=1))
        for updates in (1, 2):
            watch.add_events(updates, "running", {"loss": loss})
    found = scalars(tmp_path / "events")
    assert found == [
        ("running/loss", 1, 2.5),
        ("running/loss", 1, 3.5),
        ("running/loss", 2, 3.5),
    ]


def test_without_the_package_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(
        UserError, match=r"tensorboard is not installed .*convs2s\[tensorboard\]"
    ):
        Watch(ProgressFile(tmp_path), events=tmp_path).begin(
            TrainerState(Schedule(0.25), 0.25, 1)
        )


@pytest.mark.parametrize("on", [False, True])
def test_it_is_no_part_of_a_trainings_identity(on: bool) -> None:
    given, plain = tiny.settings(tensorboard=on), tiny.settings()
    assert recipe_identity(given.architecture, given.training) == recipe_identity(
        plain.architecture, plain.training
    )
    assert training_settings(given) == training_settings(plain)
