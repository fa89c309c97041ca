"""States of an alignment: read as they were written, or not at all."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.text.fast_align import AlignmentState
from tests.support.damage import flipped

PROBABILITY = np.linspace(0, 1, 50, dtype=np.float32)


@pytest.fixture
def state(tmp_path: Path) -> AlignmentState:
    state = AlignmentState(tmp_path / "links.state", [b"one", b"two"])
    state.keep(iterations=3, probability=PROBABILITY)
    return state


def only_file(folder: Path) -> Path:
    (path,) = (folder / "links.state").iterdir()
    return path


def test_what_was_kept_last_is_read(tmp_path: Path, state: AlignmentState) -> None:
    state.keep(iterations=4, probability=PROBABILITY[::-1])
    kept = AlignmentState(tmp_path / "links.state", [b"one", b"two"]).kept()
    assert sorted(kept) == ["iterations", "probability"]
    assert int(kept["iterations"]) == 4
    assert (kept["probability"] == PROBABILITY[::-1]).all()


@pytest.mark.parametrize("parts", [[b"one", b"tw"], [b"two", b"one"], [b"onetwo"], []])
def test_other_content_has_another_state(
    tmp_path: Path, state: AlignmentState, parts: list[bytes]
) -> None:
    other = AlignmentState(tmp_path / "links.state", parts)
    assert other.kept() == {}


def test_no_flipped_bit_is_ever_read(tmp_path: Path, state: AlignmentState) -> None:
    path = only_file(tmp_path)
    whole = path.read_bytes()
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(flipped(whole, 8 * place + place % 8))
        kept = state.kept()
        refused += not kept
        assert not kept or (int(kept["iterations"]), kept["probability"].tolist()) == (
            3,
            PROBABILITY.tolist(),
        )
    assert refused > len(whole) // 2, "most of it counts"


@pytest.mark.parametrize("size", [0, 1, 100, 500])
def test_a_cut_state_is_not_read(
    tmp_path: Path, state: AlignmentState, size: int
) -> None:
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes()[:size])
    assert state.kept() == {}
