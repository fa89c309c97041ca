"""The papers' claims: every name is in the tables, and the papers' own values bear them out."""

from pathlib import Path

import pytest

from convs2s.config.claims import CellName, Claim, check_claim, row_index
from convs2s.config.load import load
from convs2s.config.messages import validated
from convs2s.config.paper import printed_number
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.paper.evidence import LOWER_IS_BETTER
from tests.support.cells import cells

ORACLE = "Oracle rescoring of the baseline 1000-best lists"
SCALES = ("paper", "multi30k", "multi30k_trained", "demo", "mirror")
STATED = (
    "convs2s_beats_lstm positions_help more_attention_layers_help deeper_encoders_help "
    "decoders_gain_less wide_encoder_kernels_do_not_help reversing_the_source_helps beam_5_beats_1 "
    "lstm_beam_2_beats_1 lstm_ensembles_help ensembles_beat_single_models bpe_beats_words "
    "unknown_word_replacement_helps"
)


def printed(settings: Settings, cell: CellName) -> float | None:
    table = settings.paper[cell.table]
    row = table.rows[row_index(cell, settings.paper, "here")]
    (measure,) = (one.measure for one in table.columns if one.key == cell.column)
    value = printed_number(row, cell.column)
    return -value if value is not None and measure in LOWER_IS_BETTER else value


def test_every_name_is_in_the_tables(settings: Settings) -> None:
    """Loading checks it too; here each name is looked up by itself."""
    named = [cell for claim in settings.claims.values() for cell in claim.cells()]
    assert len(named) > 100
    for cell in named:
        rows = settings.paper[cell.table].rows
        matching = [row for row in rows if row.system == cell.row]
        assert any(cell.group in (None, row.group) for row in matching), cell
        assert cell.column in {
            column.key for column in settings.paper[cell.table].columns
        }, cell


def test_what_was_to_be_tested_again_is_there(settings: Settings) -> None:
    assert set(STATED.split()) <= set(settings.claims)
    assert all(
        claim.comparisons for name, claim in settings.claims.items() if name in STATED
    )


def test_the_printed_values_are_as_the_papers_say(settings: Settings) -> None:
    """No claim has its sides the wrong way round."""
    known = 0
    for name, claim in settings.claims.items():
        for compared in claim.comparisons:
            sides = [[printed(settings, cell) for cell in side]
                     for side in (compared.better, compared.worse)]  # fmt: skip
            values = [[value for value in side if value is not None] for side in sides]
            if values == sides:
                difference = sum(values[0]) - sum(values[1])
                if compared.within is not None:
                    assert abs(difference) < compared.within, name
                else:
                    assert difference + compared.margin > 0, name
                known += 1
    assert known > 40


@pytest.mark.parametrize("scale", SCALES)
def test_rows_of_this_project_need_no_training_of_their_own(
    root: Path, scale: str
) -> None:
    settings = load(root, {"scale": scale})
    trained = {
        (cell.task, cell.model, run)
        for name in settings.paper
        if name not in ("further_rows", "trainings")
        for cell in cells(settings, name)
        for runs in cell.runs
        for run in members(runs)
    }
    if settings.scale.n_best is not None:
        word_task = str(settings.scale.task_for("wmt14_en_fr_word"))
        # Of ConvS2S beside the LSTM a claim takes three seeds.
        trained |= {
            (word_task, settings.scale.n_best.model, f"seed{seed}")
            for seed in (1, 2, 3)
        }
    further = {
        (cell.task, cell.model, run)
        for cell in cells(settings, "further_rows")
        for run in cell.runs
    }
    assert further <= trained
    models = {"paper": 3, "mirror": 1}.get(scale, 4)
    assert len({model for _, model, _ in further}) == models


CELL = {"table": "table4", "row": "ConvS2S"}
CITED = {"table": "table1", "group": "WMT'14 English-German"}
GNMT, BYTENET = (
    "Wu et al. (2016) GNMT (Word pieces)",
    "Kalchbrenner et al. (2016) ByteNet (Char)",
)
OTHER = {"table": "table4", "row": "-source position"}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (
            {},
            "expected comparisons, trends, lengths or phrases, or only untested with a reason",
        ),
        (
            {"comparisons": [{"better": [CELL], "worse": [OTHER]}], "untested": "no"},
            "expected comparisons, trends, lengths or phrases, or only untested with a reason",
        ),
        (
            {"comparisons": [{"better": [CELL], "worse": [OTHER, OTHER]}]},
            "comparisons: better has 1 cells and worse has 2; expected the same number",
        ),
        (
            {
                "comparisons": [
                    {"better": [CELL | {"table": "tabel4"}], "worse": [OTHER]}
                ]
            },
            "unknown table 'tabel4'; did you mean 'table4'?",
        ),
        (
            {"comparisons": [{"better": [CELL | {"row": "ConvS2"}], "worse": [OTHER]}]},
            "unknown row of table4 'ConvS2'; did you mean 'ConvS2S'?",
        ),
        (
            {
                "comparisons": [
                    {"better": [CELL | {"column": "bleus"}], "worse": [OTHER]}
                ]
            },
            "unknown column of table4 'bleus'; did you mean 'bleu'?",
        ),
        (
            {
                "comparisons": [
                    {
                        "better": [CITED | {"row": GNMT}],
                        "worse": [CITED | {"row": BYTENET}],
                    }
                ]
            },
            f"comparisons: '{GNMT}' and '{BYTENET}' have only printed values, which no run can "
            "change; name a row of kind ours",
        ),
        (
            {"trends": [{"table": "figure2", "x": {"1": 1}, "per": "layer"}]},
            "figure2 has 2 rows '1'; name the group as well",
        ),
        (
            {
                "trends": [
                    {
                        "table": "figure2",
                        "group": "encoders",
                        "x": {"1": 1},
                        "per": "layer",
                    }
                ]
            },
            "unknown group of figure2 'encoders'; did you mean 'encoder'?",
        ),
        (
            {"trends": [{"table": "lstm_table2", "x": {ORACLE: 1}, "per": "layer"}]},
            f"row '{ORACLE}' of lstm_table2 has no number in column 'bleu'; name another column",
        ),
    ],
)
def test_faults_are_told_in_one_line(
    settings: Settings, claim: dict[str, object], expected: str
) -> None:
    stated = validated(Claim, {"says": "a", "source": "b", **claim}, "here")
    with pytest.raises(UserError) as caught:
        check_claim(stated, settings.paper, "config/claims.yaml: mine")
    assert str(caught.value) == f"config/claims.yaml: mine: {expected}"
