"""The filter against clean-corpus-n.perl."""

from pathlib import Path

import pytest

from tests.support.clean import CASES, assert_filtered
from tests.support.golden import DATA


@pytest.mark.parametrize(("name", "maximum", "ratio"), CASES)
def test_filter_is_clean_corpus_n(
    tmp_path: Path, name: str, maximum: int, ratio: float
) -> None:
    assert_filtered(DATA / "clean", tmp_path, ("en", "fr"), 318, name, maximum, ratio)
