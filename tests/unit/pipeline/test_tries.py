"""Notes of tries: one that fails leaves its own, one that succeeds leaves what there was."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from convs2s.pipeline.job import job
from convs2s.pipeline.living import RUN
from convs2s.pipeline.tries import failed_try, note_beside, noted_try


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv(RUN, raising=False)
    return [str(tmp_path / "made/train.txt"), str(tmp_path / "made/valid.txt")]


def fail(output: list[str]) -> None:
    with pytest.raises(KeyError), noted_try(output):
        raise KeyError


def test_a_job_that_never_failed_has_no_note(output: list[str]) -> None:
    with noted_try(output):
        pass
    assert failed_try(output[0]) == ""
    assert not note_beside(output[0]).exists()


def test_a_job_that_fails_leaves_a_note_which_no_other_try_has(
    output: list[str],
) -> None:
    fail(output)
    first = failed_try(output[0])
    fail(output)
    second = failed_try(output[0])
    assert first
    assert second not in ("", first)
    assert note_beside(output[0]).name == ".train.txt.try"


def test_a_job_that_succeeds_leaves_the_note_as_it_was(output: list[str]) -> None:
    fail(output)
    before = failed_try(output[0])
    for _ in range(2):
        with noted_try(output):
            pass
        assert failed_try(output[0]) == before


def test_a_second_try_of_a_run_leaves_what_the_plan_saw(
    output: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first one Snakemake knows nothing: it has planned before."""
    monkeypatch.setenv(RUN, "first")
    fail(output)
    with noted_try(output):
        pass
    assert failed_try(output[0]) == ""
    fail(output)
    planned = failed_try(output[0])
    monkeypatch.setenv(RUN, "second")
    fail(output)
    fail(output)
    with noted_try(output):
        pass
    assert failed_try(output[0]) == planned


def test_a_damaged_note_is_none(output: list[str]) -> None:
    fail(output)
    for content in ("", "[1]", "{"):
        note_beside(output[0]).write_text(content)
        assert failed_try(output[0]) == ""


def test_a_job_that_is_killed_has_left_its_note_already(output: list[str]) -> None:
    fail(output)
    before = failed_try(output[0])
    with noted_try(output):
        assert failed_try(output[0])
        assert failed_try(output[0]) != before


def test_what_makes_no_file_has_no_note() -> None:
    with noted_try([]):
        pass


def test_every_job_notes_its_try(output: list[str], tmp_path: Path) -> None:
    rule = SimpleNamespace(log=[str(tmp_path / "a.log")], input=[], output=output)
    with pytest.raises(KeyError), job(rule):
        raise KeyError
    assert failed_try(output[0])
