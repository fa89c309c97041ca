"""When a plan takes outputs for out of date, and why it says that finished trainings run again."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from convs2s.config.identity import training_settings
from convs2s.pipeline.living import RUN
from convs2s.pipeline.made import note_of_origin, noted_origin
from convs2s.pipeline.outdated import change_file, keep_changes, remove_changes
from convs2s.pipeline.retrained import say_what_runs_again, what_runs_again
from convs2s.pipeline.tries import noted_try
from tests.support import tiny
from tests.support.refusals import rows, says

OUTPUT = "codes"
OWN = "train.en"
MADE_WITH = {"merges": 50, "languages": ("en", "nl")}


@pytest.fixture(autouse=True)
def made(in_folder: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An output with its note, made from a user's file, in the working directory."""
    monkeypatch.delenv(RUN, raising=False)
    Path(OWN).write_text("a dog\n")
    with noted_origin([OUTPUT], MADE_WITH, [OWN]):
        Path(OUTPUT).write_text("a d\n")
    yield
    remove_changes()


def change(merges: int, own_file: str = OWN) -> tuple[Path | None, bool]:
    return change_file(OUTPUT, {**MADE_WITH, "merges": merges}, [own_file])


def is_outdated(merges: int = 50, own_file: str = OWN) -> bool:
    return change(merges, own_file)[1]


def test_other_params_or_an_older_file_are_a_change() -> None:
    assert change(50) == (None, False)
    assert is_outdated(merges=40)
    Path(OWN).touch()  # a newer file is left to Snakemake, which compares its content
    assert not is_outdated()
    os.utime(OWN, (1e9, 1e9))
    assert is_outdated()
    os.utime(note_of_origin(OUTPUT), (1e9, 1e9))  # at the same moment
    assert is_outdated()
    Path("link").symlink_to(OWN)
    assert not is_outdated(own_file="link")  # of which nothing is noted
    Path(OWN).unlink()  # no longer needed
    assert not is_outdated()


def test_a_damaged_note_is_a_change_and_a_missing_one_is_not() -> None:
    for content in ("", "[1]", '{"params": 1}'):
        note_of_origin(OUTPUT).write_text(content)
        assert is_outdated()
    note_of_origin(OUTPUT).unlink()
    assert not is_outdated()


def test_a_job_that_a_power_cut_ended_is_a_change() -> None:
    note_of_origin(OUTPUT).unlink()
    with pytest.raises(KeyError), noted_try([OUTPUT]):
        raise KeyError
    assert is_outdated()
    with noted_try([OUTPUT]):
        pass
    assert not is_outdated()


def test_a_plan_leaves_no_file_and_a_run_the_same_for_the_same_change() -> None:
    file, _ = change(40)
    assert file is not None
    assert file.stat().st_mtime_ns > Path(OUTPUT).stat().st_mtime_ns
    remove_changes()
    assert not file.exists()
    assert change(40) == (file, True)
    keep_changes()
    remove_changes()
    content = file.read_bytes()
    assert change(40) == (file, True)
    assert file.read_bytes() == content  # it may be the input of a job that runs
    with noted_origin([OUTPUT], {**MADE_WITH, "merges": 40}, [OWN]):
        pass
    assert change(40) == (file, False)
    assert change(30)[0] not in (None, file)


WHY = """
{} => {maximum_epochs: 9} => training.maximum_epochs 3 -> 9: \
2 trainings go on from their last states, if these were kept
{} => {maximum_epochs: null} => training.maximum_epochs 3 -> null: \
2 trainings go on from their last states, if these were kept
{} => {maximum_epochs: 2} => training.maximum_epochs 3 -> 2: 2 trainings start again
{maximum_epochs: 2.5} => {} => training.maximum_epochs 2.5 -> 3: 2 trainings start again
{schedule: {kind: cosine}} => {schedule: {kind: cosine}, maximum_epochs: 9} \
=> training.maximum_epochs 3 -> 9: 2 trainings start again
{} => {clip: 0.2} => training.clip 0.1 -> 0.2: 2 trainings start again
{} => {checkpoint_minutes: 1, tensorboard: true} => nothing
"""


@pytest.mark.parametrize(("before", "after", "line"), rows(WHY))
def test_why_finished_trainings_run_again(before: str, after: str, line: str) -> None:
    old, stated = (
        training_settings(tiny.settings(**yaml.safe_load(changes)))
        for changes in (before, after)
    )
    settings = Path("small/settings.json")
    assert what_runs_again(str(settings), stated) is None
    records = [Path(f"small/{seed}/training.json") for seed in ("seed1", "seed2")]
    for record in records:
        record.parent.mkdir(parents=True)
    settings.write_text(json.dumps(old))
    assert what_runs_again(str(settings), stated) is None  # none has finished
    for record in records:
        record.touch()
    assert (what_runs_again(str(settings), stated) or "nothing") == line


def test_only_the_process_that_plans_says_so_and_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("seed1").mkdir()
    Path("seed1/training.json").touch()
    encoder = [{"layers": 2, "width": 16, "kernel": 3}] * 3
    old = tiny.settings({"encoder": encoder}, clip=0.2, momentum=0.9, maximum_epochs=2)
    Path("settings.json").write_text(json.dumps(training_settings(old)))
    stated = training_settings(tiny.settings())
    with monkeypatch.context() as job:
        job.setenv(RUN, "@vm")
        say_what_runs_again("task/small", "settings.json", stated)
    assert capsys.readouterr().err == ""
    for _ in range(2):
        say_what_runs_again("task/small", "settings.json", stated)
    (line,) = capsys.readouterr().err.splitlines()
    said = (
        "training.clip 0.2 -> 0.1, training.maximum_epochs 2 -> 3, and others: 1 train"
    )
    says(line, "task/small: architecture.encoder [{", "... -> [{", said)
    Path("settings.json").write_text("[1]")  # damaged: its job writes it anew
    assert what_runs_again("settings.json", stated) is None
