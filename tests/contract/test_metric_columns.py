"""Every metric of a score file can be a column of a table, also an extension's."""

from pathlib import Path

import pytest
import yaml

from convs2s.config.extensions import VARIABLE
from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from tests.contract.shown_tables import table
from tests.support.cells import bleu, write
from tests.support.refusals import refusal, says

OPTIONS = """
scale: demo
extensions: [examples/word_error_rate.py]
overrides: {tasks: {demo_en_fr: {metrics: [WER]}}}
"""
COLUMNS = """
- {key: chrf, name: chrF, measure: chrf}
- {key: wer, name: Errors, measure: WER, digits: 1}
"""


@pytest.fixture(autouse=True)
def no_extensions(
    monkeypatch: pytest.MonkeyPatch, root: Path, copy: Path, in_folder: None
) -> None:
    """None is left of what a test's configuration names."""
    monkeypatch.setenv(VARIABLE, "")
    Path("examples").symlink_to(root / "examples")


def with_columns(columns: str) -> Settings:
    """The demo's configuration with further columns of table 1, and an extension's metric."""
    file = Path("config/paper.yaml")
    content = yaml.safe_load(file.read_text("utf-8"))
    content["table1"]["columns"] += yaml.safe_load(columns)
    file.write_text(yaml.safe_dump(content), "utf-8")
    return load(Path(), yaml.safe_load(OPTIONS))


def test_a_column_names_a_metric_and_shows_its_scores() -> None:
    settings = with_columns(COLUMNS)
    scored = [
        cell for cell in cells(settings, "table1") if cell.address.column == "bleu"
    ]
    further = """
    chrf: {score: 51.5, signature: "nrefs:1|nc:6"}
    further: {WER: {score: 33.33, signature: "WER|code:0a"}}
    """
    written = bleu(27.0, 26.0) | yaml.safe_load(further)
    assert scored
    paths = [write(path, written) for cell in scored for path in cell.paths]
    shown = table(settings, "table1", paths)
    rows = settings.scale.shown_rows(settings.paper["table1"])
    for cell in scored:
        row = shown.iloc[rows.index(cell.address.row)]
        assert row["chrF (ours)"].startswith("51.50")
        assert "chrF: chrF nrefs:1|nc:6" in row["Metric"]
        expected = "33.3" if cell.task == "demo_en_fr" else "not measured"
        assert row["Errors (ours)"].startswith(expected)


def test_a_column_of_an_unknown_metric_is_refused() -> None:
    message = refusal(with_columns, COLUMNS.replace("WER", "WRE"))
    says(message, "paper.yaml: table1: column wer", "'WRE'; did you mean 'WER'?")
