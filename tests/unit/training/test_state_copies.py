"""States are kept in another place as well, and a machine without any goes on from there."""

import shutil
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.training.run import train
from convs2s.training.state_folder import StateFolder
from tests.support import tiny


def test_another_machine_goes_on_to_the_same_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "task"
    tiny.prepare(task)
    whole = tiny.job(
        task, tmp_path / "whole/model.safetensors", tiny.settings(maximum_epochs=4)
    )
    train(whole)
    copies = (tmp_path / "copies").as_uri()
    first, second = (
        tiny.job(
            task,
            tmp_path / name / "model.safetensors",
            tiny.settings(maximum_epochs=4),
            states=copies,
        )
        for name in ("first", "second")
    )

    def lost(*_: object) -> None:
        raise UserError("the machine is lost")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("convs2s.training.run.export", lost)
        with pytest.raises(UserError, match="is lost"):
            train(first)
    shutil.rmtree(tmp_path / "first")
    capsys.readouterr()
    train(second)
    assert "fetched" in capsys.readouterr().err
    assert sha256(second.output) == sha256(whole.output)


def test_states_that_are_here_are_not_fetched(tmp_path: Path) -> None:
    place = tmp_path / "place"
    states = StateFolder(tmp_path / "here", {}, str(place))
    for folder, text in ((place / states.path.name, "there"), (states.path, "here")):
        folder.mkdir(parents=True)
        (folder / "last.safetensors").write_text(text)
    with states.locked():
        assert states.last.read_text() == "here"


def test_a_place_that_cannot_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    states = StateFolder(tmp_path, {}, str(tmp_path / "file"))
    states.write(tmp_path / "last.safetensors", {}, {})
    assert "last.safetensors is not copied" in capsys.readouterr().err
    states = StateFolder(tmp_path, {}, "nosuch://place")
    with (
        pytest.raises(UserError, match=r"^states: nosuch://place: cannot be read: "),
        states.locked(),
    ):
        pass
