"""The papers' claims: the papers' own values bear them out."""

from pathlib import Path

import pytest

from convs2s.config.claims import CellName, row_index
from convs2s.config.load import load
from convs2s.config.paper import printed_number
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.evidence import LOWER_IS_BETTER

COMPARED = (
    "convs2s_beats_lstm positions_help more_attention_layers_help deeper_encoders_help "
    "decoders_gain_less wide_encoder_kernels_do_not_help reversing_the_source_helps beam_5_beats_1 "
    "lstm_beam_2_beats_1 lstm_ensembles_help ensembles_beat_single_models bpe_beats_words "
    "unknown_word_replacement_helps"
)

SCALES = {"paper": 3, "multi30k": 4, "multi30k_trained": 4, "demo": 4, "mirror": 1}
"""Scales, and how many models rows of this project add to them."""


def printed(settings: Settings, cell: CellName) -> float | None:
    table = settings.paper[cell.table]
    row = table.rows[row_index(cell, settings.paper, "")]
    value = printed_number(row, cell.column)
    (column,) = (one for one in table.columns if one.key == cell.column)
    lower = row.measure_in(column) in LOWER_IS_BETTER
    return -value if value is not None and lower else value


def test_no_claim_has_its_sides_the_wrong_way_round(settings: Settings) -> None:
    assert all(settings.claims[name].comparisons for name in COMPARED.split())
    known = 0
    for name, claim in settings.claims.items():
        for compared in claim.comparisons:
            better = [printed(settings, cell) for cell in compared.better]
            worse = [printed(settings, cell) for cell in compared.worse]
            if None in better or None in worse:
                continue
            known += 1
            difference = sum(filter(None, better)) - sum(filter(None, worse))
            if compared.within is not None:
                assert abs(difference) < compared.within, name
            else:
                assert difference + compared.margin > 0, name
    assert known > 40


@pytest.mark.parametrize(("scale", "models"), SCALES.items())
def test_rows_of_this_project_need_no_training_of_their_own(
    root: Path, scale: str, models: int
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
        task = str(settings.scale.task_for("wmt14_en_fr_word"))
        # Of ConvS2S beside the LSTM a claim takes three seeds.
        for seed in ("seed1", "seed2", "seed3"):
            trained.add((task, settings.scale.n_best.model, seed))
    further = {
        (cell.task, cell.model, run)
        for cell in cells(settings, "further_rows")
        for run in cell.runs
    }
    assert further <= trained
    assert len({model for _, model, _ in further}) == models
