"""The commands that print a page, as a user types them."""

import json
import re
from pathlib import Path

import pytest

from convs2s.files.text import write_lines
from tests.unit.conftest import Terminal


def test_attention_prints_a_page_of_the_sentence(run: Terminal, model: Path) -> None:
    # An unknown option, as one sentence is no batch.
    with pytest.raises(SystemExit, match="2"):
        run("attention", model, "w1", "--batch-tokens", "9")
    page = run("attention", model, "w1 <b>w2</b>", "--beam", "1")
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>" not in page
    drawn = re.search(r'<script type="application/json">(.*)</script>', page)
    assert drawn
    attention = json.loads(drawn[1])
    assert attention["source"][0] == "w1"
    assert len(attention["weights"]) == 2  # decoder layers
    for fetching in ("http:", "https:", " src=", "@import"):
        assert fetching not in page


def test_outputs_are_compared_as_text_and_as_a_page(
    run: Terminal, tmp_path: Path
) -> None:
    for name, lines in (
        ("a", ["x y z v"]),
        ("b", ["x y u v"]),
        ("reference", ["x y u v"]),
    ):
        write_lines(tmp_path / name, lines)
    files = tmp_path / "a", tmp_path / "b", "--reference", tmp_path / "reference"
    said = run("compare-outputs", *files, "--tokenized")
    assert f"BLEU = 100.00 ± 0.00  {tmp_path / 'b'}" in said
    assert "baseline   x y [-z-] v" in said
    page = run(
        "compare-outputs", *files, "--tokenized", "--html", "--source", tmp_path / "a"
    )
    assert "<del>z</del>" in page
    assert "<ins>u</ins>" in page


def test_a_number_of_lines_has_bounds(run: Terminal, tmp_path: Path) -> None:
    write_lines(tmp_path / "a", ["x"])
    with pytest.raises(SystemExit, match="options: most: expected at least 1, not 0"):
        run(
            "compare-outputs",
            *[tmp_path / "a"] * 2,
            "--reference",
            tmp_path / "a",
            "--most",
            "0",
        )
