"""What the pages name exists."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from snakemake.cli import get_argument_parser, parse_config

from convs2s.config.load import load
from convs2s.pipeline.asked import check_targets

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


PLACEHOLDER = re.compile(r"\b(?:TASK|MODEL|RUN|SET|TEST|DECODING|BASELINE|SYSTEM|TARGET)\b")
OWN_TASK = re.compile(r"# config/tasks/(\w+)\.yaml")
"""The first line of a task that a page has its reader write."""


def test_commands_ask_for_what_there_is(root: Path) -> None:
    """Each task, model, run, test set, decoding and scale in them is one of the configuration's."""
    pages = [*root.glob("*.md"), *root.glob("docs/*.md")]
    typed = {line for page in pages for line in COMMAND.findall(page.read_text("utf-8"))}
    rules = re.findall(r"^rule (\w+):", "".join(f.read_text() for f in _rule_files(root)), re.M)
    own = {
        f"results/{name}/" for page in pages for name in OWN_TASK.findall(page.read_text("utf-8"))
    }
    added = re.findall(
        r"^(\w+):$", "".join(f.read_text() for f in root.glob("examples/*.yaml")), re.M
    )
    checked = 0
    for command in typed:
        read = get_argument_parser().parse_args(shlex.split(command, comments=True)[1:])
        complete = [
            one
            for one in read.targets
            if not PLACEHOLDER.search(one) and not {*added} & {*re.split(r"[/.]", one)}
        ]
        paths = [one for one in complete if not one.startswith(tuple(own))]
        stated = parse_config(read.config)
        scale = {"scale": stated["scale"]} if "scale" in stated else {}
        check_targets(paths, rules, load(root, scale))
        checked += len(paths)
    assert checked > 20


def _rule_files(root: Path) -> list[Path]:
    return [root / "Snakefile", *root.glob("rules/*.smk")]


def test_the_picture_of_the_rules_is_that_of_their_graph(root: Path) -> None:
    drawn = subprocess.run(
        [sys.executable, "tools/rule_picture.py"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert drawn == (root / "docs/images/rules.svg").read_text("utf-8")
