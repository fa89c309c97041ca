"""Two systems on one test set: pair by pair, over the pairs, and line by line."""

import json
import statistics
from pathlib import Path

import pytest

from convs2s.files.text import write_lines
from convs2s.scoring.bleu import compare
from convs2s.scoring.comparison import compare_models, compare_outputs
from convs2s.scoring.reports.layout import Report, render_text
from tests.contract.score_files import decoded, read
from tests.support.refusals import rows, says

LINES = """
the man sees a red car . => the man sees two red cars . => the man sees two red cars .
a  dog runs . => a dog runs . => a dog runs .
she is here . => she was there . => she is here .
no . => no ! => yes .
x => y => so
"""
"""What the baseline, the system and a translator make of a line."""

RIGHT = "le chien {} dort dans la maison rouge ."
WRONG = "le chat mange dans la maison ."


def outputs(folder: Path, name: str, wrong: int) -> Path:
    """Write a decoded test set of 30 lines with so many wrong sentences."""
    lines = []
    for number in range(1, 31):
        form = WRONG if number <= wrong else RIGHT
        words = form.format(number)
        lines.append(json.dumps(decoded(number, words.replace(" .", "."), words)))
    write_lines(folder / name, lines)
    return folder / name


def test_pairs_of_runs_and_their_means(tmp_path: Path) -> None:
    words = [RIGHT.format(number) for number in range(1, 31)]
    write_lines(tmp_path / "tok", words)
    write_lines(tmp_path / "raw", (line.replace(" .", ".") for line in words))
    header = {"baseline": "a", "system": "b"}
    report = Report(tmp_path / "text", tmp_path / "json", None, header)
    baseline = outputs(tmp_path, "a", 15)
    pairs = {}
    for wrong in (0, 15, 18):
        pairs[f"{wrong} wrong"] = (baseline, outputs(tmp_path, f"b{wrong}", wrong))
    compare_models(
        pairs=pairs,
        raw=tmp_path / "raw",
        tokenized=tmp_path / "tok",
        report=report,
        test_set="t",
        manifest={},
        tokenize="intl",
    )
    text = report.text.read_text("utf-8")
    for kind, tokenization in (("tokenized", "none-ascii"), ("detokenized", "intl")):
        found = read(report.json)["bleu"][kind]
        assert f"|tok:{tokenization}|" in found["signature"]
        first, second, third = found["runs"].values()
        # Words with words, and text with text: 100 of 100.
        assert first["system"] == {"score": pytest.approx(100), "interval": 0}
        assert first["p_value"] < 0.05
        assert (second["difference"], second["p_value"]) == (0, 1)
        assert third["difference"] < 0
        differences = [run["difference"] for run in found["runs"].values()]
        mean = statistics.mean(differences)
        deviation = statistics.stdev(differences)
        expected = {"mean": mean, "deviation": deviation}
        assert found["difference"] == pytest.approx(expected)
        side = first["baseline"]
        of_baseline = f"{side['score']:.2f} ± {side['interval']:.2f}"
        signature = f"{kind} BLEU  {found['signature']}\n"
        says(text, signature, of_baseline, f"{mean:+.2f}\n")


def test_lines_go_from_the_largest_gain_to_the_largest_loss() -> None:
    names = ("old", "new")
    texts = list(zip(*rows(LINES), strict=True))
    source = ["s1", "s2", "s3", "s4", "s5"]
    one, few = (
        compare_outputs(*texts, form="tokenized", names=names, most=most, source=source)
        for most in (10, 1)
    )
    assert one.whole == compare(*texts, names=names)
    assert (one.lines, one.same, one.better, one.worse) == (5, 1, 1, 2)
    assert [line.number for line in one.shown] == [1, 5, 4, 3]
    # Few lines are those that differ most, whichever way.
    assert [line.number for line in few.shown] == [3]
    says(
        render_text("outputs.txt.j2", comparison=one),
        f"p = {one.whole.p_value:.4f}",
        "1 lines better, 2 worse, 1 even, 1 the same",
        "baseline   the man sees [-a-] red [-car-] .",
        "system     the man sees {+two+} red {+cars+} .",
        "source     s1",
    )
