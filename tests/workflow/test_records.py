"""Snakemake's own unit tests of rules, as docs/publishing.md types them."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.checkout import Checkout

UNIT_TESTS = ".tests/unit/test_{count_words,binarize,evaluate_bleu,summarize_runs}.py"


@pytest.mark.slow
def test_the_unit_tests_of_rules_pass(root: Path, checkout: Checkout) -> None:
    shutil.copy(root / ".test/config/config.yaml", checkout / "config.local.yaml")
    page = (root / "docs/publishing.md").read_text("utf-8")
    for option in ("--notemp", "--generate-unit-tests"):
        typed = rf"^ +(snakemake .*{option}.*?)(?: +#.*)?$"
        (command,) = re.findall(typed, page, re.MULTILINE)
        checkout.shell(command).succeeded()
    checkout.shell(f"pytest -q {UNIT_TESTS}").succeeded()
