"""Snakemake's own report and unit tests, as docs/publishing.md types them."""

import base64
import html
import re
import shutil
from pathlib import Path

import pytest

from tests.support.checkout import Checkout, check_out

PAGE = "docs/publishing.md"
UNIT_TESTS = "count_words binarize evaluate_bleu summarize_runs"


def typed(root: Path, option: str) -> str:
    """The one command of the page with an option."""
    page = (root / PAGE).read_text("utf-8")
    (found,) = re.finditer(
        rf"^ +(snakemake .*{option}.*?)(?: +#.*)?$", page, re.MULTILINE
    )
    return found[1]


def test_the_report_of_a_target_holds_the_score_as_a_page(
    root: Path, finished: Checkout
) -> None:
    finished.snakemake("results/mine_en_nl/bleu.html").succeeded()
    asked = typed(root, "--report").replace("demo ", "results/mine_en_nl/bleu.html ")
    finished.shell(asked).succeeded()
    report = (finished / "report.html").read_text("utf-8")
    (page,) = re.findall(r"bleu\.html;base64,([\w+/=]+)", report)
    score = (finished / "results/mine_en_nl/bleu.txt").read_text("utf-8")
    shown = html.unescape(base64.b64decode(page).decode())
    assert all(line in shown for line in score.splitlines())


@pytest.mark.slow
def test_the_unit_tests_of_rules_pass(root: Path, tmp_path: Path) -> None:
    checkout = check_out(root, tmp_path)
    shutil.copy(root / ".test/config/config.yaml", checkout / "config.local.yaml")
    for command in (typed(root, "--notemp"), typed(root, "--generate-unit-tests")):
        checkout.shell(command).succeeded()
    tests = " ".join(f".tests/unit/test_{rule}.py" for rule in UNIT_TESTS.split())
    checkout.shell(f"pytest -q {tests}").succeeded()
