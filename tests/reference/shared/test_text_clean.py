"""The filter against clean-corpus-n.perl, on real text."""

from pathlib import Path

import pytest

from tests.support.clean import CASES, assert_filtered


@pytest.mark.parametrize(("name", "maximum", "ratio"), CASES)
def test_filter_is_clean_corpus_n(
    shared: Path, tmp_path: Path, name: str, maximum: int, ratio: float
) -> None:
    golden = shared / "golden" / "clean"
    assert_filtered(golden, tmp_path, ("en", "de"), 644, name, maximum, ratio)
