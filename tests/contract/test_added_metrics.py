"""Metrics of a user's own, and the example of learned ones by a stand-in of COMET."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from convs2s.config.extensions import check_added, export_extensions
from convs2s.scoring.evaluation import further_score
from tests.contract.test_score_files import decoded, read, scored_bleu

SOURCES = ["ein Hund", "ja"]


@pytest.mark.parametrize(
    "returned", ["3", "3.0", "numpy.float32(3)", "numpy.array(3)", "Score(3.0, 'x')"]
)
def test_a_number_is_taken_with_the_metrics_own_signature(
    tmp_path: Path, returned: str
) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy\nfrom convs2s.scoring.bleu import Score\n"
        f"METRICS = {{'own': lambda text, reference: {returned}}}\n"
    )
    export_extensions(["own.py"], tmp_path)
    found = read(scored_bleu(tmp_path, "scored", [decoded(1, "a")], metrics=["own"]))
    score = found["further"]["own"]
    assert score["score"] == 3
    assert score["signature"].startswith("own|code:")
    assert score["signature"].endswith("|x") == ("Score" in returned)


def predict(rows: list[dict[str, str]], **_: Any) -> SimpleNamespace:
    """Stand in for a checkpoint of COMET that finds equal lines good."""
    assert [row["src"] for row in rows] == SOURCES
    scores = [1.0 if row["mt"] == row["ref"] else 0.5 for row in rows]
    return SimpleNamespace(scores=scores)


def test_comets_signature_has_its_version_and_model(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export_extensions(["examples/learned_metrics.py"], root)
    example = sys.modules[check_added("", "METRICS", "COMET").__module__]
    comet = ModuleType("comet")
    comet.__dict__["load_from_checkpoint"] = lambda _: SimpleNamespace(predict=predict)
    monkeypatch.setitem(sys.modules, "comet", comet)
    monkeypatch.setattr(example, "version", {"unbabel-comet": "2.2.9"}.get)
    checkpoint = tmp_path / "models/wmt22-comet-da.ckpt"
    checkpoint.parent.mkdir()
    signatures = set()
    for weights in ("one", "another"):
        checkpoint.write_text(weights)
        found = further_score("COMET", ["a", "b"], ["a", "c"], source=SOURCES)
        assert found.score == 75
        assert "|version:2.2.9|model:wmt22-comet-da.ckpt@" in found.signature
        signatures.add(found.signature)
    assert len(signatures) == 2
