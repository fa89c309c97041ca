"""When a plan takes outputs for out of date by the note of what they were made from."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.pipeline.living import RUN
from convs2s.pipeline.made import note_of_origin, noted_origin
from convs2s.pipeline.outdated import change_file, keep_changes, remove_changes
from convs2s.pipeline.tries import noted_try

OUTPUT = "codes"
OWN = "train.en"
MADE_WITH = {"merges": 50, "languages": ("en", "nl")}


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An output with its note, made from a user's file, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(RUN, raising=False)
    Path(OWN).write_text("a dog\n")
    with noted_origin([OUTPUT], MADE_WITH, [OWN]):
        Path(OUTPUT).write_text("a d\n")
    yield
    remove_changes()


def is_outdated(merges: int = 50, own_file: str = OWN) -> bool:
    found = change_file(OUTPUT, {**MADE_WITH, "merges": merges}, [own_file])
    return found is not None and found[1]


def replace(content: str, seconds: float) -> None:
    Path(OWN).write_text(content)
    os.utime(OWN, (seconds, seconds))


def test_params_and_files_of_before_are_up_to_date() -> None:
    assert not is_outdated()
    Path(OWN).touch()  # a newer file is left to Snakemake, which compares its content
    assert not is_outdated()
    Path(OWN).unlink()  # no longer needed
    assert not is_outdated()


def test_other_params_or_an_older_file_are_a_change() -> None:
    assert is_outdated(merges=40)
    replace("a dog\n", 1e9)
    assert is_outdated()
    Path("link").symlink_to(OWN)
    assert not is_outdated(own_file="link")  # of which nothing is noted


@pytest.mark.parametrize("content", ["", "{", "[1]", "{}", '{"params": 1}'])
def test_a_damaged_note_is_a_change_and_a_missing_one_is_not(content: str) -> None:
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
    found = change_file(OUTPUT, {"merges": 40}, [OWN])
    assert found is not None
    file = found[0]
    assert file.stat().st_mtime_ns > Path(OUTPUT).stat().st_mtime_ns
    remove_changes()
    assert not file.exists()
    assert change_file(OUTPUT, {"merges": 40}, [OWN]) == (file, True)
    keep_changes()
    remove_changes()
    content = file.read_bytes()
    assert change_file(OUTPUT, {"merges": 40}, [OWN]) == (file, True)
    assert file.read_bytes() == content  # it may be the input of a job that runs
    with noted_origin([OUTPUT], {"merges": 40}, [OWN]):
        pass
    assert change_file(OUTPUT, {"merges": 40}, [OWN]) == (file, False)
    assert change_file(OUTPUT, {"merges": 30}, [OWN]) not in (None, (file, True))
