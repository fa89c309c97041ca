"""Learned metrics by stand-ins that have their packages' interfaces."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from convs2s.config.options import LearnedMetric
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import write_lines
from convs2s.scoring import learned
from convs2s.scoring.evaluation import BleuEvaluation, evaluate_bleu
from convs2s.scoring.learned import learned_score
from convs2s.scoring.summary import summarize_runs
from tests.unit.conftest import Terminal

SOURCES, HYPOTHESES, REFERENCES = ["ein Hund", "ja"], ["a dog", "no"], ["a dog", "yes"]


class Comet:
    """A checkpoint of COMET that finds equal lines good."""

    def predict(
        self, rows: list[dict[str, str]], *, batch_size: int, gpus: int, progress_bar: bool
    ) -> SimpleNamespace:
        assert {"src", "mt", "ref"} == rows[0].keys()
        assert [row["src"] for row in rows] == SOURCES
        assert gpus == 0  # it would take one beside the lock that all others hold
        scores = [1.0 if row["mt"] == row["ref"] else 0.5 for row in rows]
        return SimpleNamespace(scores=scores, system_score=sum(scores) / len(scores))


class BleurtScorer:
    """BLEURT's scorer."""

    def __init__(self, checkpoint: str) -> None:
        assert Path(checkpoint).is_dir()

    def score(
        self, *, references: Sequence[str], candidates: Sequence[str], batch_size: int
    ) -> list[float]:
        pairs = zip(references, candidates, strict=True)
        return [0.75 if one == other else 0.25 for one, other in pairs]


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install both stand-ins; return COMET's checkpoint."""
    path = tmp_path / "model.ckpt"
    path.write_bytes(b"weights")
    comet, bleurt, score = (ModuleType(name) for name in ("comet", "bleurt", "bleurt.score"))
    comet.__dict__["load_from_checkpoint"] = lambda given: Comet() if given == str(path) else None
    score.__dict__["BleurtScorer"] = BleurtScorer
    for module in (comet, bleurt, score):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(learned, "version", {"unbabel-comet": "2.2.9", "BLEURT": "0.0.2"}.get)
    return path


def test_comet_scores_source_translation_and_reference(checkpoint: Path) -> None:
    metric = LearnedMetric(name="comet", model=str(checkpoint))
    found = learned_score(metric, SOURCES, HYPOTHESES, REFERENCES)
    assert found.score == 0.75
    digits = sha256(checkpoint)[:8]
    assert found.signature == f"COMET|version:2.2.9|model:model.ckpt@{digits}"


def test_bleurt_scores_translation_and_reference(checkpoint: Path) -> None:
    folder = checkpoint.with_name("BLEURT-20")
    folder.mkdir()
    metric = LearnedMetric(name="bleurt", model=str(folder))
    found = learned_score(metric, SOURCES, HYPOTHESES, REFERENCES)
    assert found.score == 0.5
    signatures = {found.signature}
    for weights in ("one", "another"):
        (folder / "variables").write_text(weights)
        found = learned_score(metric, SOURCES, HYPOTHESES, REFERENCES)
        signatures.add(found.signature)
    assert len(signatures) == 3
    assert all(one.startswith("BLEURT|version:0.0.2|model:BLEURT-20@") for one in signatures)


def test_what_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    metric = LearnedMetric(name="comet", model=str(tmp_path / "model.ckpt"))
    with pytest.raises(UserError, match="no such model of COMET; nothing is downloaded"):
        learned_score(metric, SOURCES, HYPOTHESES, REFERENCES)
    (tmp_path / "model.ckpt").touch()
    with pytest.raises(UserError, match=r"the package unbabel-comet .*: install it, or leave"):
        learned_score(metric, SOURCES, HYPOTHESES, REFERENCES)
    with pytest.raises(UserError, match="1 sources, 2 translations and 2 references"):
        learned_score(metric, SOURCES[:1], HYPOTHESES, REFERENCES)


def test_its_cell_names_it_and_no_cell_is_there_without_it(
    checkpoint: Path, tmp_path: Path
) -> None:
    rows = [
        {"line": number, "source": source, "text": text, "words": text.split()}
        | {"text_before": text, "words_before": text.split(), "replacements": []}
        for number, (source, text) in enumerate(zip(SOURCES, HYPOTHESES, strict=True), start=1)
    ]
    write_lines(tmp_path / "test.jsonl", map(json.dumps, rows))
    write_lines(tmp_path / "reference", REFERENCES)
    metric = LearnedMetric(name="comet", model=str(checkpoint))
    reports = []
    for number, one in enumerate((None, metric)):
        evaluation, report = tmp_path / f"{number}.json", tmp_path / f"{number}.txt"
        files: dict[str, Any] = dict.fromkeys(("raw", "tokenized"), tmp_path / "reference")
        evaluate_bleu(
            translations=tmp_path / "test.jsonl",
            output=evaluation,
            test_set="test",
            manifest={},
            learned_metric=one,
            **files,
        )
        summarize_runs(
            BleuEvaluation,
            {("test", "seed1"): evaluation},
            text=report,
            json=report.with_suffix(".summary"),
            header={"task": "mine"},
            stand_in=None,
        )
        reports.append(report.read_text("utf-8"))
    without, scored = reports
    assert "COMET" not in without
    assert "test COMET            = 0.7500         COMET|version:2.2.9|model:model.ckpt@" in scored


def test_the_command_prints_score_version_and_model(
    run: Terminal, checkpoint: Path, tmp_path: Path
) -> None:
    for name, lines in (("source", SOURCES), ("reference", REFERENCES)):
        write_lines(tmp_path / name, lines)
    files = "--source", tmp_path / "source", "--reference", tmp_path / "reference"
    options = "--metric", "comet", "--model", checkpoint
    said = run("score", "learned", *options, *files, text=b"a dog\nno\n")
    assert said.startswith("COMET = 0.7500  COMET|version:2.2.9|model:model.ckpt@")
    with pytest.raises(SystemExit, match="options: model: "):
        run("score", "learned", "--metric", "comet", "--model", "", *files)
