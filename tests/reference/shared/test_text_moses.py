"""Normalization, tokenization and detokenization of real text against Moses of May 2017 (Perl)."""

from itertools import product
from pathlib import Path

import pytest

from tests.support.moses import KINDS, LANGUAGES, assert_real_text_is_equal


@pytest.mark.parametrize(
    ("kind", "language"), [*product(KINDS, LANGUAGES), ("wmt16", "en"), ("wmt16", "ro")]
)
def test_real_text_is_equal(shared: Path, kind: str, language: str) -> None:
    assert_real_text_is_equal(shared / "golden" / "tok", kind, language, least=650)
