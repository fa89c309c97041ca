"""docs/departures.yaml: what it says of the configuration and the code is so."""

import re
from dataclasses import replace
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from departures import SOURCE, Statement, check_settings, page, read_statements

ENTRY = {
    "paper": "lstm",
    "section": "3.4",
    "says": "Gradients are clipped",
    "verdict": "equal",
    "settings": {"models.lstm.training.clip": 5},
}


@pytest.fixture(scope="module")
def settings(root: Path) -> Settings:
    return load(root, {})


@pytest.fixture(scope="module")
def statements(root: Path) -> list[Statement]:
    return read_statements(root)


def test_the_page_is_made_from_the_statements(
    root: Path, statements: list[Statement]
) -> None:
    """After a change: python tools/departures.py > docs/departures.md."""
    assert (root / "docs/departures.md").read_text("utf-8") == page(statements)


def test_settings_are_those_of_the_configuration(
    settings: Settings, statements: list[Statement]
) -> None:
    assert sum(len(statement.settings) for statement in statements) > 100
    check_settings(statements, settings)


def test_each_name_of_the_code_is_there(statements: list[Statement]) -> None:
    places = {place for statement in statements for place in statement.code}
    assert len(places) > 40
    for place in places:
        module, names = place.split(":")
        reduce(getattr, names.split("."), import_module(f"convs2s.{module}"))


def test_the_page_counts_and_leads_with_what_departs(
    statements: list[Statement],
) -> None:
    text = page(statements)
    assert text.startswith("# Departures")
    counted = re.search(
        r"(\d+) statements .*: (\d+) \*\*depart\*\*\nhere, (\d+) .*, (\d+) are", text
    )
    assert counted
    every, *verdicts = map(int, counted.groups())
    assert every == sum(verdicts) == len(statements)
    tables = text.split("\n## ")[1:]
    assert [table.partition("\n")[0] for table in tables] == [
        "Departs",
        "Missing",
        "Equal",
    ]
    assert [table.count("\n| ") - 2 for table in tables] == verdicts
    # |y| is no end of a cell.
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}


@pytest.mark.parametrize("key", ["clip", "learning_rate"])
def test_a_changed_setting_is_told(
    settings: Settings, statements: list[Statement], key: str
) -> None:
    """Whoever changes the LSTM's recipe is told which statement it was."""
    lstm = settings.models["lstm"]
    recipe = lstm.training.model_copy(update={key: 0.5})
    models = {**settings.models, "lstm": lstm.model_copy(update={"training": recipe})}
    of_key = [
        each for each in statements if f"models.lstm.training.{key}" in each.settings
    ]
    with pytest.raises(
        UserError, match=rf"statement 1: settings: models\.lstm\.training\.{key}"
    ):
        check_settings(of_key, replace(settings, models=models))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {}}, "statement 1: expected settings or code: where it is"),
        (
            {"verdict": "departs"},
            "statement 1: here: expected what is here instead, and why",
        ),
        (
            {"verdict": "same"},
            "statement 1: verdict: expected 'departs', 'missing' or 'equal'",
        ),
        (
            {"code": ["models.lstm"]},
            r"statement 1: code\[0\]: expected MODULE:NAME in convs2s",
        ),
    ],
)
def test_an_unfit_statement_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / SOURCE).write_text(
        yaml.safe_dump([{**ENTRY, **changes}]), encoding="utf-8"
    )
    with pytest.raises(UserError, match=message):
        read_statements(tmp_path)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("models.lstm.training.clpi", "unknown key 'clpi'; did you mean 'clip'"),
        # English-Romanian and English-French have rows of this name.
        (
            "paper.table1.rows.ConvS2S (BPE 40K).task",
            r"unknown key 'ConvS2S \(BPE 40K\)'",
        ),
        ("paper.table1.rows.ConvS2S (Word 80K).task", "is 'wmt16_en_ro_word' in the"),
        ("paper.table1.columns.0.key", "is 'bleu' in the configuration, not 5"),
    ],
)
def test_ways_lead_to_values(settings: Settings, way: str, message: str) -> None:
    statement = Statement.model_validate({**ENTRY, "settings": {way: 5}})
    with pytest.raises(UserError, match=message):
        check_settings([statement], settings)
