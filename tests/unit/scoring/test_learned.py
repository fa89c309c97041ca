"""The example of learned metrics, by stand-ins that have their packages' interfaces."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from convs2s.config.extensions import check_added, export_extensions
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.scoring.evaluation import BleuEvaluation, evaluate_bleu, further_score
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.summary import summarize_runs
from tests.unit.conftest import Terminal

SOURCES, HYPOTHESES, REFERENCES = ["ein Hund", "ja"], ["a dog", "no"], ["a dog", "yes"]


class Comet:
    """A checkpoint of COMET that finds equal lines good."""

    def predict(
        self,
        rows: list[dict[str, str]],
        *,
        batch_size: int,
        gpus: int,
        progress_bar: bool,
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
def extension(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    """The example, known in a folder that has no models."""
    monkeypatch.chdir(tmp_path)
    export_extensions(["examples/learned_metrics.py"], root)
    return sys.modules[check_added("", "METRICS", "COMET").__module__]


@pytest.fixture
def checkpoint(
    extension: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Install both stand-ins; return COMET's checkpoint."""
    path = tmp_path / str(extension.COMET_MODEL)
    path.parent.mkdir()
    path.write_bytes(b"weights")
    comet, bleurt, score = (
        ModuleType(name) for name in ("comet", "bleurt", "bleurt.score")
    )
    loaded = {extension.COMET_MODEL: Comet()}
    comet.__dict__["load_from_checkpoint"] = loaded.get
    score.__dict__["BleurtScorer"] = BleurtScorer
    for module in (comet, bleurt, score):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(
        extension, "version", {"unbabel-comet": "2.2.9", "BLEURT": "0.0.2"}.get
    )
    return path


def test_comet_scores_source_translation_and_reference(checkpoint: Path) -> None:
    found = further_score("COMET", HYPOTHESES, REFERENCES, source=SOURCES)
    assert found.score == 75
    name, code, version, model = found.signature.split("|")
    assert (name, code[:5], version) == ("COMET", "code:", "version:2.2.9")
    assert model.startswith("model:wmt22-comet-da.ckpt@")
    checkpoint.write_bytes(b"others")
    assert further_score("COMET", HYPOTHESES, REFERENCES, source=SOURCES) != found


def test_bleurt_scores_translation_and_reference(checkpoint: Path) -> None:
    folder = checkpoint.with_name("BLEURT-20")
    folder.mkdir()
    found = further_score("BLEURT", HYPOTHESES, REFERENCES, source=None)
    assert found.score == 50
    signatures = {found.signature}
    for weights in ("one", "another"):
        (folder / "variables").write_text(weights)
        found = further_score("BLEURT", HYPOTHESES, REFERENCES, source=None)
        signatures.add(found.signature)
    assert len(signatures) == 3
    assert all("|version:0.0.2|model:BLEURT-20@" in one for one in signatures)


def test_what_is_missing_is_said_in_one_line(
    extension: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        UserError, match="metric COMET: needs the source; give it with --source"
    ):
        further_score("COMET", HYPOTHESES, REFERENCES, source=None)
    with pytest.raises(UserError, match="COMET: 2 lines, but the source has 1"):
        further_score("COMET", HYPOTHESES, REFERENCES, source=SOURCES[:1])
    with pytest.raises(UserError, match="the package unbabel-comet is not installed"):
        further_score("COMET", HYPOTHESES, REFERENCES, source=SOURCES)
    with pytest.raises(UserError, match="BLEURT: 2 lines, but the reference has 1"):
        further_score("BLEURT", HYPOTHESES, REFERENCES[:1], source=None)
    monkeypatch.setattr(extension, "version", str)
    with pytest.raises(
        UserError, match=r"models/wmt22-comet-da\.ckpt: no such model; state in"
    ):
        further_score("COMET", HYPOTHESES, REFERENCES, source=SOURCES)


def test_its_line_names_it_and_no_line_is_there_without_it(
    checkpoint: Path, tmp_path: Path
) -> None:
    rows = [
        {"line": number, "source": source, "text": text, "words": text.split()}
        | {"text_before": text, "words_before": text.split(), "replacements": []}
        for number, (source, text) in enumerate(
            zip(SOURCES, HYPOTHESES, strict=True), start=1
        )
    ]
    write_lines(tmp_path / "test.jsonl", map(json.dumps, rows))
    write_lines(tmp_path / "reference", REFERENCES)
    reports = []
    for number, metrics in enumerate(((), ("COMET",))):
        evaluation, report = tmp_path / f"{number}.json", tmp_path / f"{number}.txt"
        files: dict[str, Any] = dict.fromkeys(
            ("raw", "tokenized"), tmp_path / "reference"
        )
        evaluate_bleu(
            translations=tmp_path / "test.jsonl",
            output=evaluation,
            test_set="test",
            manifest={},
            metrics=metrics,
            **files,
        )
        summarize_runs(
            BleuEvaluation,
            {("test", "seed1"): evaluation},
            Report(report, report.with_suffix(".summary"), None, {"task": "mine"}),
        )
        reports.append(report.read_text("utf-8"))
    without, scored = reports
    assert "COMET" not in without
    assert "test COMET            = 75.00          COMET|code:" in scored
    assert "|version:2.2.9|model:wmt22-comet-da.ckpt@" in scored


@pytest.mark.usefixtures("checkpoint")
def test_the_command_prints_score_version_and_model(
    run: Terminal, tmp_path: Path
) -> None:
    for name, lines in (("source", SOURCES), ("reference", REFERENCES)):
        write_lines(tmp_path / name, lines)
    files = "--source", tmp_path / "source", "--reference", tmp_path / "reference"
    said = run("score", "bleu", "--metric", "COMET", *files, text=b"a dog\nno\n")
    assert said.startswith("COMET = 75.00  COMET|code:")
    assert "|version:2.2.9|model:wmt22-comet-da.ckpt@" in said
