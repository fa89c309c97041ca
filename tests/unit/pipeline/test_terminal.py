"""What Snakemake's messages become on a terminal."""

import logging
import os
from enum import Enum
from typing import Any

import pytest

from convs2s.pipeline.terminal import TO_RESUME, ShortFormat, ShortMessages, outlive_reader


class Kind(Enum):
    job_info = "job_info"
    job_error = "job_error"
    job_finished = "job_finished"
    progress = "progress"


def said(shown: ShortMessages, message: str, level: int = logging.INFO, **fields: Any) -> str:
    """What a message looks like; nothing where it is not shown."""
    record = logging.makeLogRecord({"msg": message, "levelno": level, **fields})
    whole = ShortFormat(logging.Formatter("whole: %(message)s"), shown)
    return whole.format(record) if shown.filter(record) else ""


def test_a_job_is_one_line_that_counts() -> None:
    shown = ShortMessages()
    job: dict[str, Any] = {
        "event": Kind.job_info,
        "rule_name": "tokenize_file",
        "input": [],
        "output": ["a.zst", "b.zst"],
    }
    assert said(shown, "", **job).endswith("] tokenize_file: a.zst")
    none: dict[str, Any] = job | {"rule_name": "preflight", "output": []}
    assert said(shown, "", **none).endswith("] preflight: started")
    assert said(shown, "", **none | {"input": ["a"]}).endswith("] preflight: done with all of it")
    assert said(shown, "", event=Kind.progress, done=3, total=40) == ""
    assert said(shown, "", **job).endswith("] tokenize_file: a.zst (3 of 40 done)")
    assert said(shown, "", event=Kind.progress, done=40, total=40) == "whole: "


@pytest.mark.parametrize(
    "message", ["Select jobs to execute...", "Execute 2 jobs...", "Removing temporary output a."]
)
def test_what_a_line_for_each_job_says_is_not_repeated(message: str) -> None:
    assert said(ShortMessages(), message) == ""
    assert said(ShortMessages(), "done", event=Kind.job_finished) == ""


def test_errors_stay_whole_until_ctrl_c() -> None:
    shown = ShortMessages()
    error: dict[str, Any] = {"level": logging.ERROR, "event": Kind.job_error}
    assert said(shown, "Error in rule a", **error) == "whole: Error in rule a"
    shown.is_interrupted = True
    assert said(shown, "Error in rule a", **error) == ""
    assert said(shown, "Terminating processes on user request, this might take") == TO_RESUME


def test_a_terminal_that_nobody_reads_falls_silent() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        handler = logging.StreamHandler(stream)
        record = logging.makeLogRecord({"msg": "a line"})
        logger = logging.Logger("terminal")
        logger.addHandler(handler)
        outlive_reader(logger)
        handler.emit(record)
        assert os.read(reader, 100) == b"a line\n"
        os.close(reader)
        handler.stream.write("a line\n" * 10_000)  # more than the stream keeps in memory
        handler.stream.flush()
        os.write(writer, b"of a job that starts later\n")
