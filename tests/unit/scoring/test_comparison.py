"""Two systems on one test set: what the report says, pair by pair and over the pairs."""

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.scoring.comparison import Pairs, compare_models
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
    return TestSet(folder, [translation(i, bad if i <= wrong else sentence(i)) for i in numbers])


def compared(
    folder: Path, wrong: dict[str, tuple[int, int]], stand_in: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the report, as text and as JSON, of runs with so many wrong sentences."""
    sets = {
        run: [decoded(folder / f"{side}-{run}", count) for side, count in enumerate(counts)]
        for run, counts in wrong.items()
    }
    first = next(iter(sets.values()))[0]
    pairs: Pairs = {run: (a.translations, b.translations) for run, (a, b) in sets.items()}
    text, data = folder / "a-vs-b.txt", folder / "a-vs-b.json"
    compare_models(
        pairs=pairs,
        raw=first.raw,
        tokenized=first.tokenized,
        text=text,
        json=data,
        stand_in=stand_in,
        header=NAMED,
        test_set="test",
        manifest={"revision": "abc"},
        samples=100,
    )
    return text.read_text("utf-8"), json.loads(data.read_text("utf-8"))


def test_each_pair_has_its_intervals_difference_and_p_value(tmp_path: Path) -> None:
    text, data = compared(tmp_path, {"seed1": (15, 0), "seed2": (12, 12)})
    assert text.startswith("task      demo_en_fr\nbaseline  demo\nsystem    demo_deep\n")
    assert "test: 30 lines; 2 pairs of runs (seed1, seed2), 100 resamples each\n====" in text
    assert text.count("demo (95%)  demo_deep (95%)  difference  p-value") == 2
    for kind in ("tokenized", "detokenized"):
        bleu = data["bleu"][kind]
        assert "|bs:100|seed:12345|" in bleu["signature"]
        assert f"{kind} BLEU  {bleu['signature']}\n" in text
        for run, result in bleu["runs"].items():
            rows = [row for row in text.split("\n") if row.startswith(run) and _has(row, result)]
            assert rows
            assert all(row.endswith(f"{result['p_value']:.4f}") for row in rows)
        assert bleu["runs"]["seed1"]["p_value"] < 0.05
        assert bleu["runs"]["seed1"]["system"] == {"score": pytest.approx(100), "interval": 0}
        assert bleu["runs"]["seed2"]["difference"] == 0
        assert bleu["runs"]["seed2"]["p_value"] == 1
    assert (data["lines"], data["samples"], data["manifest"]) == (30, 100, {"revision": "abc"})


def _has(row: str, result: dict[str, Any]) -> bool:
    sides = [result[side] for side in ("baseline", "system")]
    return all(f"{side['score']:.2f} ± {side['interval']:.2f}" in row for side in sides)


def test_the_mean_is_over_the_pairs_and_has_no_p_value(tmp_path: Path) -> None:
    text, data = compared(tmp_path, {"seed1": (15, 0), "seed2": (12, 3), "seed3": (9, 12)})
    bleu = data["bleu"]["tokenized"]
    differences = [run["difference"] for run in bleu["runs"].values()]
    assert differences[2] < 0 < differences[1]
    assert bleu["difference"]["mean"] == pytest.approx(statistics.mean(differences))
    assert bleu["difference"]["deviation"] == pytest.approx(statistics.stdev(differences))
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
    text, data = compared(tmp_path, {"seed1": (2, 1)}, stand_in="sentences of a grammar")
    assert text.startswith("STAND-IN DATA: sentences of a grammar\n\ntask ")
    assert data["stand_in"] == "sentences of a grammar"


def test_translations_of_another_test_set_are_named(tmp_path: Path) -> None:
    whole = decoded(tmp_path / "whole", 0)
    (tmp_path / "cut").mkdir()
    cut = TestSet(tmp_path / "cut", [translation(1, sentence(1))])
    text = tmp_path / "a-vs-b.txt"
    with pytest.raises(UserError, match=r"cut/test\.jsonl: 1 lines, but the reference has 30"):
        compare_models(
            pairs={"seed1": (whole.translations, cut.translations)},
            raw=whole.raw,
            tokenized=whole.tokenized,
            text=text,
            json=tmp_path / "a-vs-b.json",
            stand_in=None,
            header=NAMED,
            test_set="test",
            manifest={},
        )
    assert not text.exists()
