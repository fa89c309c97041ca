"""A search waits for its device once a step."""

from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.search import beam_search
from convs2s.decoding.translate import load_ensemble
from convs2s.models.ensemble import DecoderState
from tests.support.waiting import counted_waits


@pytest.mark.parametrize("beam", [1, 5])
def test_a_step_waits_once(
    sharp: Path, monkeypatch: pytest.MonkeyPatch, beam: int
) -> None:
    steps: list[int] = []
    best = DecoderState.best

    def counted(state: DecoderState, previous: Indices, *given: Any) -> Any:
        steps.append(len(previous))
        return best(state, previous, *given)

    monkeypatch.setattr(DecoderState, "best", counted)
    ensemble, _ = load_ensemble([sharp], "cpu", DecodingSettings())
    source = torch.full((6, 9), PADDING)
    for row in range(6):
        source[row, : row + 3] = 5 + row
        source[row, row + 3] = END
    with counted_waits() as waits:
        beam_search(ensemble, source, DecodingSettings(beam=beam))
    assert len(steps) > 10
    assert waits == {"cpu": len(steps)}
