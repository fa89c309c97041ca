"""docs/departures.yaml: what it says of the configuration and the code is so."""

from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from convs2s.config.settings import Settings
from departures import SOURCE, check_settings, page, read_statements
from tests.support.refusals import refusal, says

CLIP = "models.lstm.training.clip"
ENTRY = {
    "paper": "lstm",
    "section": "3.4",
    "says": "Gradients are clipped",
    "verdict": "equal",
    "settings": {CLIP: 5},
}


def test_every_statement_is_so(root: Path, settings: Settings) -> None:
    """After a change: python tools/departures.py > docs/departures.md."""
    statements = read_statements(root)
    assert (root / "docs/departures.md").read_text("utf-8") == page(statements)
    assert sum(len(statement.settings) for statement in statements) > 100
    check_settings(statements, settings)
    places = {place for statement in statements for place in statement.code}
    assert len(places) > 40
    for place in places:
        module, names = place.split(":")
        reduce(getattr, names.split("."), import_module(f"convs2s.{module}"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings": {}}, ["settings or code"]),
        ({"verdict": "departs"}, ["here"]),
        ({"code": ["models.lstm"]}, ["code[0]", "MODULE:NAME"]),
        ({"settings": {CLIP: 4}}, [CLIP, "5", "4"]),
        ({"settings": {"models.lstm.training.clpi": 5}}, ["'clpi'", "'clip'"]),
        # English-Romanian and English-French have rows of this name.
        ({"settings": {"paper.table1.rows.ConvS2S (BPE 40K).task": 5}}, ["BPE 40K"]),
        ({"settings": {"paper.table1.columns.0.key": 5}}, ["'bleu'", "5"]),
    ],
)
def test_a_wrong_statement_is_refused(
    tmp_path: Path, settings: Settings, changes: dict[str, object], words: list[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / SOURCE).write_text(yaml.safe_dump([{**ENTRY, **changes}]), "utf-8")

    def check() -> None:
        check_settings(read_statements(tmp_path), settings)

    says(refusal(check), "statement 1", *words)
