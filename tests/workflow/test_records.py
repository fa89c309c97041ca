"""Snakemake's own unit tests of rules, as docs/publishing.md types them."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.checkout import check_out

PAGE = "docs/publishing.md"
UNIT_TESTS = "count_words binarize evaluate_bleu summarize_runs"


def typed(root: Path, option: str) -> str:
    """The one command of the page with an option."""
    page = (root / PAGE).read_text("utf-8")
    (found,) = re.finditer(
        rf"^ +(snakemake .*{option}.*?)(?: +#.*)?$", page, re.MULTILINE
    )
    return found[1]


@pytest.mark.slow
def test_the_unit_tests_of_rules_pass(root: Path, tmp_path: Path) -> None:
    checkout = check_out(root, tmp_path)
    shutil.copy(root / ".test/config/config.yaml", checkout / "config.local.yaml")
    for command in (typed(root, "--notemp"), typed(root, "--generate-unit-tests")):
        checkout.shell(command).succeeded()
    tests = " ".join(f".tests/unit/test_{rule}.py" for rule in UNIT_TESTS.split())
    checkout.shell(f"pytest -q {tests}").succeeded()
