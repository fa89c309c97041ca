"""The papers' claims: the papers' own values bear them out."""

from collections.abc import Iterable

from convs2s.config.claims import CellName, row_index
from convs2s.config.paper import printed_number
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.evidence import LOWER_IS_BETTER


def printed(settings: Settings, cell: CellName) -> float | None:
    table = settings.paper[cell.table]
    value = printed_number(table.rows[row_index(cell, settings.paper, "")], cell.column)
    (measure,) = (one.measure for one in table.columns if one.key == cell.column)
    return -value if value is not None and measure in LOWER_IS_BETTER else value


def test_no_claim_has_its_sides_the_wrong_way_round(settings: Settings) -> None:
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


def trainings(
    settings: Settings, tables: Iterable[str]
) -> set[tuple[str | None, str | None, str]]:
    return {
        (cell.task, cell.model, run)
        for name in tables
        for cell in cells(settings, name)
        for runs in cell.runs
        for run in members(runs)
    }


def test_rows_of_this_project_need_no_training_of_their_own(demo: Settings) -> None:
    further = trainings(demo, ["further_rows"])
    others = demo.paper.keys() - {"further_rows", "trainings"}
    # Of ConvS2S beside the LSTM, whose n-best lists it scores, a claim takes three seeds.
    assert demo.scale.n_best is not None
    task = demo.scale.task_for("wmt14_en_fr_word")
    seeds = {(task, demo.scale.n_best.model, f"seed{seed}") for seed in (1, 2, 3)}
    assert further <= trainings(demo, others) | seeds
    assert len({model for _, model, _ in further}) == 4
