"""What the pages name exists."""

import re
import shlex
from pathlib import Path

from snakemake.cli import get_argument_parser, parse_config

COMMAND = re.compile(r"^ {4,}(snakemake .*)$", re.MULTILINE)
PATH = re.compile(
    r"\b(?:tests|src|rules|workflow|benchmarks|profiles|envs|docs|schemas)/[\w./-]+\.(?:py|smk|yaml|md|sh|json)\b"
)


def test_every_file_that_a_page_names_is_there(root: Path) -> None:
    pages = [*(root / "docs").glob("*.md"), *root.glob("*.md")]
    named = {(page.name, path) for page in pages for path in PATH.findall(page.read_text("utf-8"))}
    assert len(named) > 20
    assert [both for both in sorted(named) if not (root / both[1]).exists()] == []


def test_snakemake_understands_every_command(root: Path) -> None:
    """What follows ``--config KEY=VALUE`` is a setting to it, not a target."""
    pages = [*root.glob("*.md"), *root.glob("*/*.md")]
    typed = {line for page in pages for line in COMMAND.findall(page.read_text("utf-8"))}
    assert len(typed) > 10
    for command in typed:
        read = get_argument_parser().parse_args(shlex.split(command, comments=True)[1:])
        parse_config(read.config)
        assert read.targets or not read.config, command
