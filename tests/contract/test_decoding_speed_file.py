"""Timing a test set: what the file says of it."""

import json
import time
from pathlib import Path

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.test_sets import time_decoding
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import write_lines

LINES = ["w1 w2 w3", "", "w4 w5"]


def test_a_timing_says_what_was_translated_and_on_what(
    model: Path, tmp_path: Path
) -> None:
    source, output = tmp_path / "test.en", tmp_path / "test.beam5.cpu.speed.json"
    write_lines(source, LINES)
    started = time.perf_counter()
    time_decoding(
        LineTranslator([model], DecodingSettings(batch_sentences=2), "cpu"),
        source=source,
        output=output,
        device="cpu",
        threads=1,
        manifest={"processor": "a processor", "revision": "abc"},
    )
    elapsed = time.perf_counter() - started
    said = json.loads(output.read_text("utf-8"))
    found = list(LineTranslator([model], DecodingSettings(), "cpu").translate(LINES))
    assert said["lines"] == 3
    assert said["tokens"] == sum(len(one.tokens) + 1 for one in found)
    assert 0 < said["seconds"]["score"] < elapsed
    assert said["seconds"]["signature"].startswith(
        "a processor, 1 CPU threads, fp32, batches of up to 2, torch "
    )
    assert said["lines_per_second"] * said["seconds"]["score"] == pytest.approx(3)
    assert said["manifest"]["revision"] == "abc"
