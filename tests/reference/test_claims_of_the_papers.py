"""The papers' claims: the papers' own values bear them out."""

from convs2s.config.claims import CellName, row_index
from convs2s.config.paper import printed_number
from convs2s.config.settings import Settings
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
