"""What the pages name exists, and pages and pictures that are made are up to date."""

import hashlib
import re
from pathlib import Path

import pytest

import paper_scores
import rule_picture
from convs2s.config.extensions import code_of
from convs2s.config.settings import Settings

PATH = re.compile(
    r"\b(?:tests|src|rules|workflow|benchmarks|profiles|envs|docs|schemas)/[\w./-]+\.(?:py|smk|yaml|md|sh|json)\b"
)


@pytest.fixture(scope="module")
def pages(root: Path) -> dict[str, str]:
    """The text of each page, by its name."""
    files = [*root.glob("*.md"), *root.glob("docs/*.md")]
    return {path.name: path.read_text("utf-8") for path in files}


def test_every_file_that_a_page_names_is_there(
    root: Path, pages: dict[str, str]
) -> None:
    named = {path for text in pages.values() for path in PATH.findall(text)}
    assert len(named) > 20
    assert [path for path in named if not (root / path).exists()] == []


def test_titles_are_no_questions(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert not re.search(r"^#+ .*\?$", text, re.MULTILINE), name


def test_pages_show_the_checksums_of_the_examples(
    root: Path, pages: dict[str, str]
) -> None:
    examples = {"extending.md": "word_error_rate", "scores.md": "learned_metrics"}
    for page, example in examples.items():
        code = code_of((root / f"examples/{example}.py").read_text("utf-8"))
        digest = hashlib.sha256(code.encode()).hexdigest()[:16]
        assert f"|code:{digest}" in pages[page]


@pytest.mark.slow
def test_the_picture_of_the_rules_is_up_to_date(root: Path) -> None:
    """After a change: python tools/rule_picture.py > docs/images/rules.svg."""
    drawn = "\n".join(rule_picture.picture(rule_picture.rule_graph()))
    assert (root / "docs/images/rules.svg").read_text("utf-8") == f"{drawn}\n"


def test_the_page_of_scores_is_up_to_date(
    pages: dict[str, str], settings: Settings
) -> None:
    """After a change: python tools/paper_scores.py > docs/paper_scores.md."""
    assert pages["paper_scores.md"] == paper_scores.page(settings.paper)
