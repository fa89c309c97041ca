"""docs/departures.yaml: what it says of the configuration and the code is so."""

from functools import reduce
from importlib import import_module
from pathlib import Path

from convs2s.config.settings import Settings
from departures import SOURCE, check_settings, page, read_statements
from tests.support.refusals import refusal, rows, says

ENTRY = """\
- paper: lstm
  section: "3.4"
  says: Gradients are clipped
  verdict: equal
  settings: {models.lstm.training.clip: 5}
"""


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


# English-Romanian and English-French have rows of the name `ConvS2S (BPE 40K)`.
REFUSED = r"""
verdict: equal => verdict: departs => here
{models.lstm.training.clip: 5} => {} => settings or code
clip: 5} => clip: 5}\n  code: [models.lstm] => code[0] ... MODULE:NAME
clip: 5 => clip: 4 => models.lstm.training.clip ... 5 ... 4
clip: 5 => clpi: 5 => 'clpi' ... 'clip'
models.lstm.training.clip => paper.table1.rows.ConvS2S (BPE 40K).task => BPE 40K
models.lstm.training.clip => paper.table1.columns.0.key => 'bleu' ... 5
"""


def test_a_wrong_statement_is_refused(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "docs").mkdir()

    def check() -> None:
        check_settings(read_statements(tmp_path), settings)

    for old, new, words in rows(REFUSED):
        (tmp_path / SOURCE).write_text(ENTRY.replace(old, new), "utf-8")
        says(refusal(check), "statement 1", words)
