"""Two systems on one test set: pair by pair, over the pairs, and line by line."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.scoring.bleu import compare
from convs2s.scoring.comparison import (
    OutputComparison,
    Part,
    compare_models,
    compare_outputs,
    mark_differences,
)
from convs2s.scoring.reports.layout import Report, render_text
from tests.unit.scoring.test_reports import TestSet, sentence, translation

NAMED = {
    "task": "demo_en_fr",
    "baseline": "demo",
    "system": "demo_deep",
    "decoding": "beam5",
    "scale": "demo",
}
LINES = 30


def decoded(folder: Path, wrong: int) -> TestSet:
    """Return a decoded test set with so many wrong sentences."""
    folder.mkdir()
    bad = ["le", "chat", "mange", "dans", "la", "maison", "."]
    numbers = range(1, LINES + 1)
    return TestSet(
        folder, [translation(i, bad if i <= wrong else sentence(i)) for i in numbers]
    )


def report(
    folder: Path,
    runs: dict[str, list[TestSet]],
    of: TestSet,
    stand_in: str | None = None,
) -> tuple[str, dict[str, Any]]:
    """Return the report of pairs of runs, as text and as JSON; ``of`` has the references."""
    text, data = folder / "a-vs-b.txt", folder / "a-vs-b.json"
    compare_models(
        pairs={run: (a.translations, b.translations) for run, (a, b) in runs.items()},
        raw=of.raw,
        tokenized=of.tokenized,
        report=Report(text, data, stand_in, NAMED),
        test_set="test",
        manifest={"revision": "abc"},
    )
    return text.read_text("utf-8"), json.loads(data.read_text("utf-8"))


def compared(
    folder: Path, wrong: dict[str, tuple[int, int]], stand_in: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the report of runs with so many wrong sentences."""
    sets = {
        run: [
            decoded(folder / f"{side}-{run}", count)
            for side, count in enumerate(counts)
        ]
        for run, counts in wrong.items()
    }
    return report(folder, sets, next(iter(sets.values()))[0], stand_in)


def test_each_pair_has_its_intervals_difference_and_p_value(tmp_path: Path) -> None:
    text, data = compared(tmp_path, {"seed1": (15, 0), "seed2": (12, 12)})
    assert text.startswith(
        "task      demo_en_fr\nbaseline  demo\nsystem    demo_deep\n"
    )
    assert (
        "test: 30 lines; 2 pairs of runs (seed1, seed2), 1000 resamples each\n===="
        in text
    )
    assert text.count("demo (95%)  demo_deep (95%)  difference  p-value") == 2
    for kind in ("tokenized", "detokenized"):
        bleu = data["bleu"][kind]
        assert "|bs:1000|seed:12345|" in bleu["signature"]
        assert f"{kind} BLEU  {bleu['signature']}\n" in text
        for run, result in bleu["runs"].items():
            rows = [
                row
                for row in text.split("\n")
                if row.startswith(run) and _has(row, result)
            ]
            assert rows
            assert all(row.endswith(f"{result['p_value']:.4f}") for row in rows)
        assert bleu["runs"]["seed1"]["p_value"] < 0.05
        assert bleu["runs"]["seed1"]["system"] == {
            "score": pytest.approx(100),
            "interval": 0,
        }
        assert bleu["runs"]["seed2"]["difference"] == 0
        assert bleu["runs"]["seed2"]["p_value"] == 1
    assert len([row for row in text.split("\n") if row.startswith("mean ")]) == 2
    assert (data["lines"], data["samples"], data["manifest"]) == (
        30,
        1000,
        {"revision": "abc"},
    )


def _has(row: str, result: dict[str, Any]) -> bool:
    sides = [result[side] for side in ("baseline", "system")]
    return all(f"{side['score']:.2f} ± {side['interval']:.2f}" in row for side in sides)


def test_the_mean_is_over_the_pairs_and_has_no_p_value(tmp_path: Path) -> None:
    text, data = compared(
        tmp_path, {"seed1": (15, 0), "seed2": (12, 3), "seed3": (9, 12)}
    )
    bleu = data["bleu"]["tokenized"]
    differences = [run["difference"] for run in bleu["runs"].values()]
    assert differences[2] < 0 < differences[1]
    assert bleu["difference"]["mean"] == pytest.approx(statistics.mean(differences))
    assert bleu["difference"]["deviation"] == pytest.approx(
        statistics.stdev(differences)
    )
    row = next(line for line in text.split("\n") if line.startswith("mean"))
    assert row.split() == [
        "mean",
        f"{bleu['baseline']['mean']:.2f}",
        f"{bleu['system']['mean']:.2f}",
        f"{bleu['difference']['mean']:+.2f}",
    ]


def test_one_pair_claims_no_mean(tmp_path: Path) -> None:
    text, data = compared(tmp_path, {"seed1": (2, 1)})
    assert "one pair of runs (seed1)" in text
    assert "mean" not in text
    assert data["bleu"]["tokenized"]["difference"]["deviation"] is None


def test_stand_in_data_says_so_first(tmp_path: Path) -> None:
    text, data = compared(
        tmp_path, {"seed1": (2, 1)}, stand_in="sentences of a grammar"
    )
    assert text.startswith("STAND-IN DATA: sentences of a grammar\n\ntask ")
    assert data["stand_in"] == "sentences of a grammar"


@pytest.mark.parametrize("place", [0, 1])
def test_translations_of_another_test_set_are_named(tmp_path: Path, place: int) -> None:
    whole = decoded(tmp_path / "whole", 0)
    (tmp_path / "cut").mkdir()
    cut = TestSet(tmp_path / "cut", [translation(1, sentence(1))])
    pair = [whole, whole]
    pair[place] = cut
    with pytest.raises(
        UserError, match=r"cut/test\.jsonl: 1 lines, but the reference has 30"
    ):
        report(tmp_path, {"seed1": pair}, whole)
    assert not (tmp_path / "a-vs-b.txt").exists()


# ---- line by line ----

REFERENCE = [
    "the man sees two red cars .",
    "a dog runs .",
    "she is here now .",
    "yes .",
]
BASELINE = ["the man sees a red car .", "a dog runs .", "she is here now .", "no ."]
SYSTEM = ["the man sees two red cars .", "a dog runs .", "she was there now .", "no !"]


def found(most: int = 10, source: list[str] | None = None) -> OutputComparison:
    return compare_outputs(
        BASELINE,
        SYSTEM,
        REFERENCE,
        form="tokenized",
        names=("old", "new"),
        most=most,
        source=source,
    )


def test_words_of_one_output_alone_are_mark_differences() -> None:
    one, other = mark_differences(BASELINE[0], SYSTEM[0])
    assert one == [
        Part("the man sees", False),
        Part("a", True),
        Part("red", False),
        Part("car", True),
        Part(".", False),
    ]
    assert [part.text for part in other if part.differs] == ["two", "cars"]
    assert mark_differences("", "x") == ([], [Part("x", True)])


def test_lines_go_from_the_largest_gain_to_the_largest_loss() -> None:
    shown = found().shown
    assert shown[0].number == 1
    assert shown[-1].number == 3
    differences = [line.difference for line in shown]
    assert differences == sorted(differences, reverse=True)
    assert differences[0] > 0 > differences[-1]
    # Few lines are those that differ most, whichever way.
    assert len(found(most=1).shown) == 1
    assert abs(found(most=1).shown[0].difference) == max(map(abs, differences))


def test_the_whole_is_the_paired_bootstraps() -> None:
    one = found()
    assert one.whole == compare(BASELINE, SYSTEM, REFERENCE, form="tokenized")
    assert (one.lines, one.same) == (4, 1)
    assert one.better + one.worse <= 3
    text = render_text(
        "outputs.txt.j2", comparison=found(source=["s1", "s2", "s3", "s4"])
    )
    assert f"p = {one.whole.p_value:.4f}" in text
    (counts,) = re.findall(
        r"(\d+) lines better, (\d+) worse, (\d+) even, (\d+) the same", text
    )
    assert sum(map(int, counts)) == one.lines
    assert "baseline   the man sees [-a-] red [-car-] ." in text
    assert "system     the man sees {+two+} red {+cars+} ." in text
    assert "source     s1" in text


def test_lines_of_the_same_words_are_the_same() -> None:
    lines = ["a b ", "a  b\r", "a\u00a0b"]
    one = compare_outputs(
        lines,
        ["a b"] * 3,
        REFERENCE[:3],
        form="tokenized",
        names=("old", "new"),
        most=9,
    )
    assert (one.same, [line.number for line in one.shown]) == (2, [3])


def test_files_of_different_lengths_are_refused() -> None:
    with pytest.raises(UserError, match="new: 4 lines, but the source has 1"):
        found(source=["s1"])
    with pytest.raises(UserError, match="old: 3 lines"):
        compare_outputs(
            BASELINE[:3],
            SYSTEM,
            REFERENCE,
            form="tokenized",
            names=("old", "new"),
            most=1,
        )
