"""Two systems on one test set: pair by pair, over the pairs, and line by line."""

import json
import statistics
from pathlib import Path

import pytest

from convs2s.files.text import write_lines
from convs2s.scoring.bleu import compare
from convs2s.scoring.comparison import (
    compare_models,
    compare_outputs,
)
from convs2s.scoring.reports.layout import Report, render_text
from tests.support.score_files import decoded, read

REFERENCE = [
    "the man sees two red cars .",
    "a dog runs .",
    "she is here .",
    "yes .",
    "so",
]
BASELINE = ["the man sees a red car .", "a  dog runs . ", "she is here .", "no .", "x"]
SYSTEM = ["the man sees two red cars .", "a dog runs .", "she was there .", "no !", "y"]
LINES = 30


def outputs(folder: Path, name: str, wrong: int) -> Path:
    """Write a decoded test set with so many wrong sentences."""
    lines = []
    for number in range(1, LINES + 1):
        words = f"le chien {number} dort dans la maison rouge ."
        if number <= wrong:
            words = "le chat mange dans la maison ."
        text = words.replace(" .", ".")
        lines.append(json.dumps(decoded(number, text, words)))
    write_lines(folder / name, lines)
    return folder / name


def test_pairs_of_runs_and_their_means(tmp_path: Path) -> None:
    right = [json.loads(line) for line in outputs(tmp_path, "right", 0).open()]
    write_lines(tmp_path / "raw", (record["text"] for record in right))
    write_lines(tmp_path / "tok", (" ".join(record["words"]) for record in right))
    header = {"baseline": "a", "system": "b"}
    report = Report(tmp_path / "text", tmp_path / "json", None, header)
    runs = {"seed1": (15, 0), "seed2": (12, 12), "seed3": (9, 12)}
    pairs = {
        run: (outputs(tmp_path, f"a{run}", a), outputs(tmp_path, f"b{run}", b))
        for run, (a, b) in runs.items()
    }
    compare_models(
        pairs=pairs,
        raw=tmp_path / "raw",
        tokenized=tmp_path / "tok",
        report=report,
        test_set="t",
        manifest={},
        tokenize="intl",
    )
    data = read(report.json)
    text = report.text.read_text("utf-8")
    for kind, tokenization in (("tokenized", "none-ascii"), ("detokenized", "intl")):
        found = data["bleu"][kind]
        assert f"|tok:{tokenization}|" in found["signature"]
        assert f"{kind} BLEU  {found['signature']}\n" in text
        first, second, third = found["runs"].values()
        # Words with words, and text with text: 100 of 100.
        assert first["system"] == {"score": pytest.approx(100), "interval": 0}
        assert first["p_value"] < 0.05
        side = first["baseline"]
        assert f"{side['score']:.2f} ± {side['interval']:.2f}" in text
        assert (second["difference"], second["p_value"]) == (0, 1)
        assert third["difference"] < 0
        differences = [run["difference"] for run in found["runs"].values()]
        mean = found["difference"]
        assert mean["mean"] == pytest.approx(statistics.mean(differences))
        assert mean["deviation"] == pytest.approx(statistics.stdev(differences))
        assert f"{mean['mean']:+.2f}\n" in text


def test_lines_go_from_the_largest_gain_to_the_largest_loss() -> None:
    names = ("old", "new")
    texts = (BASELINE, SYSTEM, REFERENCE)
    source = ["s1", "s2", "s3", "s4", "s5"]
    one, few = (
        compare_outputs(*texts, form="tokenized", names=names, most=most, source=source)
        for most in (10, 1)
    )
    assert one.whole == compare(*texts, names=names)
    assert (one.lines, one.same, one.better, one.worse) == (5, 1, 1, 2)
    assert [line.number for line in one.shown] == [1, 5, 4, 3]
    differences = [line.difference for line in one.shown]
    assert differences == sorted(differences, reverse=True)
    # Few lines are those that differ most, whichever way.
    assert [line.number for line in few.shown] == [3]
    text = render_text("outputs.txt.j2", comparison=one)
    assert f"p = {one.whole.p_value:.4f}" in text
    assert "1 lines better, 2 worse, 1 even, 1 the same" in text
    assert "baseline   the man sees [-a-] red [-car-] ." in text
    assert "system     the man sees {+two+} red {+cars+} ." in text
    assert "source     s1" in text
