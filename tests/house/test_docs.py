"""What the pages name exists, and pages and pictures that are made are up to date."""

import hashlib
import re
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression

import paper_scores
import rule_picture
from convs2s.config.extensions import code_of
from convs2s.config.file_reference import parse_file_reference
from convs2s.config.settings import Settings

PATH = re.compile(
    r"\b(?:tests|src|rules|workflow|benchmarks|profiles|envs|docs|schemas)/[\w./-]+\.(?:py|smk|yaml|md|sh|json)\b"
)


@pytest.fixture(scope="module")
def pages(root: Path) -> dict[str, str]:
    """The text of each page, by its name."""
    files = [*root.glob("*.md"), *root.glob("docs/*.md")]
    return {path.name: path.read_text("utf-8") for path in files}


def test_every_file_that_a_page_names_is_there_and_titles_are_no_questions(
    root: Path, pages: dict[str, str]
) -> None:
    named = {path for text in pages.values() for path in PATH.findall(text)}
    assert len(named) > 20
    assert [path for path in named if not (root / path).exists()] == []
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


def test_the_list_of_downloads_has_every_corpus_and_a_page_on_licenses_and_checksums(
    settings: Settings, pages: dict[str, str]
) -> None:
    references = [one for task in settings.tasks.values() for one in task.references()]
    addresses = {parse_file_reference(one).location for one in references}
    fetched = {one for one in addresses if one.startswith("http")}
    assert len(fetched) > 20
    assert fetched <= set(settings.downloads)
    entries = settings.downloads.values()
    named = {str(entry.licence) for entry in entries}
    assert {canonicalize_license_expression(name) for name in named} == named
    page = pages["data.md"]
    own = {name for name in named if name.startswith("LicenseRef-")}
    assert set(re.findall(r"^\| `(LicenseRef-\w+)` \|", page, re.MULTILINE)) == own
    without = [entry for entry in entries if not entry.sha256]
    known = len(entries) - len(without)
    assert f"{known} of the {len(entries)} listed files have a SHA-256" in page
    assert f"For the other {len(without)} files, no" in page
    assert sum(entry.md5 is not None for entry in without) == 4
