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
from convs2s.training.progress import EventFile, Watch
from convs2s.training.run import train
from convs2s.training.state_folder import ProgressFile
from tests.support import tiny
from tests.support.interrupted import train_until


def scalars(folder: Path) -> list[tuple[str, int, float]]:
    """Every scalar of the event files below a folder: its tag, step and value."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    return [
        (value.tag, event.step, value.simple_value)
        for path in sorted(folder.rglob("events.out.tfevents.*"))
        for event in LegacyEventFileLoader(str(path)).Load()
        for value in event.summary.value
    ]


def test_a_resumed_training_has_each_step_once(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.setattr(state_folder, "SECONDS_BETWEEN_NOTES", 0.0)  # each update is noted
    one = tiny.job(task, tmp_path / "run/model.safetensors", tiny.settings(tensorboard=True))
    train_until(one, epoch=1)
    (last,) = tmp_path.rglob("last.safetensors")
    saved = last.read_bytes()
    train_until(one, epoch=2)
    last.write_bytes(saved)  # as if killed before the second epoch's state was written
    train(one)
    found = scalars(tmp_path / "run/state")
    assert max(Counter((tag, step) for tag, step, _ in found).values()) == 1
    assert [step for tag, step, _ in found if tag == "epoch/valid_perplexity"] == [10, 20, 30]
    assert {tag for tag, _, _ in found} >= {"running/loss", "running/gradient", "epoch/train_loss"}
    assert sorted(step for tag, step, _ in found if tag == "running/loss") == list(range(1, 31))


def test_a_full_disk_ends_no_training(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    begin, refused = EventFile.begin, []

    def refuse(event: object) -> None:
        refused.append(event)
        raise OSError(errno.ENOSPC, "No space left on device")

    def begin_on_a_disk_that_fills_up(events: EventFile, updates: int) -> set[str]:
        kept = begin(events, updates)
        monkeypatch.setattr(events._writer, "add_event", refuse)
        return kept

    monkeypatch.setattr(EventFile, "begin", begin_on_a_disk_that_fills_up)
    one = tiny.job(task, tmp_path / "run/model.safetensors", tiny.settings(tensorboard=True))
    train(one)
    assert one.output.is_file()
    assert refused


def test_an_epoch_whose_events_a_kill_forestalled_gets_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    for _ in range(2):
        watch = Watch(ProgressFile(tmp_path), events=EventFile(tmp_path / "events"))
        watch.begin([EpochRecord(1, 30, 0.25, 2.0, 2.0, 7.389, 100, 50)], 1, 30)
    assert ("epoch/valid_loss", 30, 2.0) in scalars(tmp_path)
    assert len(scalars(tmp_path)) == len(set(scalars(tmp_path))) == 5


def test_a_kill_before_the_old_events_are_removed_doubles_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    events = EventFile(tmp_path)
    events.begin(0)
    events.add(1, "running", {"loss": 2.5})

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", kill)
        with pytest.raises(KeyboardInterrupt):
            EventFile(tmp_path).begin(1)
    assert EventFile(tmp_path).begin(1) == {"running/loss 1"}
    assert scalars(tmp_path) == [("running/loss", 1, 2.5)]


def test_without_the_package_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(UserError, match=r"tensorboard is not installed .*convs2s\[tensorboard\]"):
        EventFile(tmp_path)


@pytest.mark.parametrize("on", [False, True])
def test_it_is_no_part_of_a_trainings_identity(on: bool) -> None:
    given, plain = tiny.settings(tensorboard=on), tiny.settings()
    assert recipe_identity(given.architecture, given.training) == recipe_identity(
        plain.architecture, plain.training
    )
    assert training_settings(given) == training_settings(plain)
