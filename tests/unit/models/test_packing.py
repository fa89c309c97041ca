"""Whether fp32 weights are packed by oneDNN."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.models.kernels import quantized_linear
from convs2s.models.kernels.linear_map import PACKING_MARGIN, packs_fp32


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of the test's own, and a process that has not looked yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packs_fp32.cache_clear()
    yield tmp_path / "cache" / "convs2s"
    packs_fp32.cache_clear()


@pytest.mark.parametrize(
    ("rate", "expected"), [(PACKING_MARGIN * 1.1, True), (PACKING_MARGIN * 0.9, False)]
)
def test_they_are_where_that_is_much_faster(
    monkeypatch: pytest.MonkeyPatch, rate: float, expected: bool
) -> None:
    rates = {"blas": 1.0, "onednn": rate}
    monkeypatch.setattr(quantized_linear, "measured_here", lambda *_: rates)
    assert packs_fp32() is expected


def test_it_is_measured_once(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    packs_fp32()
    (rates,) = json.loads((cache / "kernels.json").read_text()).values()
    assert rates.keys() == {"blas", "onednn"}
    assert min(rates.values()) > 0
    packs_fp32.cache_clear()
    monkeypatch.setattr(quantized_linear, "least_seconds", lambda _: pytest.fail("again"))
    packs_fp32()


def test_without_a_cache_it_is_said(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.parent.write_text("a file in the folder's place")
    assert packs_fp32() is False
    assert "computed by blas, unmeasured" in capsys.readouterr().err
