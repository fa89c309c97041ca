"""A handful of the kills of ``make faults``: one in each way, in each stage."""

import pytest

from tests.faults.kills import STAGES, WAYS, run


@pytest.mark.slow
def test_a_killed_stage_ends_with_the_same_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kills = len(STAGES) * len(WAYS)
    counts = run(kills, number=1)
    assert counts.pop("faults", 0) == 0, capsys.readouterr().out
    assert counts == {stage.name: len(WAYS) for stage in STAGES}
