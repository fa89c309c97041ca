"""What the pages name exists."""

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from snakemake.cli import get_argument_parser, parse_config

import paper_scores
import record_terminal
import rule_picture
from convs2s.config.extensions import code_of
from convs2s.config.load import load
from convs2s.config.runs import RUN_PATTERN
from convs2s.config.settings import Settings

COMMAND = re.compile(r"^ {4,}(snakemake .*)$", re.MULTILINE)
PATH = re.compile(
    r"\b(?:tests|src|rules|workflow|benchmarks|profiles|envs|docs|schemas)/[\w./-]+\.(?:py|smk|yaml|md|sh|json)\b"
)


def test_every_file_that_a_page_names_is_there(root: Path) -> None:
    pages = [*(root / "docs").glob("*.md"), *root.glob("*.md")]
    named = {
        (page.name, path)
        for page in pages
        for path in PATH.findall(page.read_text("utf-8"))
    }
    assert len(named) > 20
    assert [both for both in sorted(named) if not (root / both[1]).exists()] == []


def commands(pages: Iterable[Path]) -> set[str]:
    """What the pages have Snakemake do; a storage plugin's options are tested where it is there."""
    typed = {
        line for page in pages for line in COMMAND.findall(page.read_text("utf-8"))
    }
    return {line for line in typed if "--default-storage-provider" not in line}


def test_snakemake_understands_every_command(root: Path) -> None:
    """What follows ``--config KEY=VALUE`` is a setting to it, not a target."""
    typed = commands([*root.glob("*.md"), *root.glob("*/*.md")])
    assert len(typed) > 10
    parser = get_argument_parser()
    for command in typed:
        read = parser.parse_args(shlex.split(command, comments=True)[1:])
        parse_config(read.config)
        assert read.targets or not read.config, command


PLACEHOLDER = re.compile(
    r"\b(?:TASK|MODEL|RUN|SET|TEST|DECODING|BASELINE|SYSTEM|TARGET|TEXT)\b"
)
OWN_TASK = re.compile(r"# config/tasks/(\w+)\.yaml")
"""The first line of a task that a page has its reader write."""


def test_commands_ask_for_what_there_is(root: Path) -> None:
    """Each task, model, run, test set, decoding and scale in them is one of the configuration's."""
    pages = [*root.glob("*.md"), *root.glob("docs/*.md")]
    typed = commands(pages)
    rule_files = [root / "workflow/Snakefile", *root.glob("rules/*.smk")]
    rules = {
        *re.findall(r"^rule (\w+):", "".join(f.read_text() for f in rule_files), re.M)
    }
    own = {
        f"results/{name}/"
        for page in pages
        for name in OWN_TASK.findall(page.read_text("utf-8"))
    }
    added = re.findall(
        r"^(\w+):$", "".join(f.read_text() for f in root.glob("examples/*.yaml")), re.M
    )
    checked, parser, loaded = 0, get_argument_parser(), dict[str, Settings]()
    for command in typed:
        read = parser.parse_args(shlex.split(command, comments=True)[1:])
        complete = [
            one
            for one in read.targets
            if not PLACEHOLDER.search(one) and not {*added} & {*re.split(r"[/.]", one)}
        ]
        paths = [one for one in complete if not one.startswith(tuple(own))]
        stated = parse_config(read.config)
        scale = stated.get("scale", "paper")
        if scale not in loaded:
            loaded[scale] = load(root, {"scale": scale})
        assert [
            one for one in paths if not is_there(one, rules, loaded[scale])
        ] == [], command
        checked += len(paths)
    assert checked > 20


def is_there(target: str, rules: set[str], settings: Settings) -> bool:
    """Return whether a target is a rule, or a file whose folders and name have names of things."""
    results = f"{settings.scale.results_dir}/"
    if not target.startswith(results):
        return target in rules or target.startswith(
            ("docs/", settings.scale.downloads_dir)
        )
    task, *place = target.removeprefix(results).split("/")
    if task not in settings.tasks:
        return task in {"paper", "shown"} or not place
    if place[0] == "compare":
        return are_named(place[1].split("."), settings.tasks[task].splits, settings)
    if place[0] != "models":
        return True
    _, model, *run, name = place
    if model not in settings.models or not all(
        re.fullmatch(RUN_PATTERN, one) for one in run
    ):
        return False
    first = name.split(".")[0]
    if first in {
        "model",
        "settings",
        "machine",
        "history",
        "training",
        "curve",
        "phrases",
    }:
        return True
    return are_named(name.split("."), settings.tasks[task].splits, settings)


def are_named(parts: Sequence[str], splits: Sequence[str], settings: Settings) -> bool:
    """Return whether a file's name begins with a test set, and a decoding if it has one."""
    of_no_decoding = {"perplexity", "rescored", "scored"}
    return parts[0] in splits and parts[1] in {*settings.decodings, *of_no_decoding}


def test_pages_show_the_checksums_of_the_examples(root: Path) -> None:
    for page, example in {
        "extending": "word_error_rate",
        "scores": "learned_metrics",
    }.items():
        code = code_of((root / f"examples/{example}.py").read_text("utf-8"))
        digest = hashlib.sha256(code.encode()).hexdigest()[:16]
        assert f"|code:{digest}" in (root / f"docs/{page}.md").read_text("utf-8"), (
            example
        )


def test_the_picture_of_the_rules_is_that_of_their_graph(root: Path) -> None:
    """After a change: python tools/rule_picture.py > docs/images/rules.svg."""
    drawn = "\n".join(rule_picture.picture(rule_picture.rule_graph()))
    assert (root / "docs/images/rules.svg").read_text("utf-8") == f"{drawn}\n"


def test_the_page_of_printed_scores_is_made_from_the_configuration(root: Path) -> None:
    """After a change: python tools/paper_scores.py > docs/paper_scores.md."""
    page = paper_scores.page(load(root, {}).paper)
    assert (root / "docs/paper_scores.md").read_text("utf-8") == page


GENERATED = {
    "configuration.md",
    "departures.md",
    "paper_scores.md",
    "tasks.md",
    "results.md",
    "results/tables.md",
    "results/claims.md",
    "short_run.md",
    "short_run/tables.md",
    "short_run/claims.md",
}
"""Pages that tools write; the discussions in them are files of their own."""


def pages_to_read(root: Path) -> Iterator[Path]:
    docs = root / "docs"
    yield root / "README.md"
    for page in docs.rglob("*.md"):
        name = page.relative_to(docs).as_posix()
        if name not in GENERATED and not name.startswith("notes/"):
            yield page


def test_titles_are_no_questions(root: Path) -> None:
    for page in pages_to_read(root):
        titles = re.findall(r"^#+ .*$", page.read_text("utf-8"), re.MULTILINE)
        assert not [title for title in titles if title.endswith("?")], page


ODD = re.compile(
    r"\b(?:who multiplies|what comes out|whole but for|no p is corrected|belongs? into|has not is"
    r"|(?:keys|its keys) then have theirs|of perplexity the fall|same command goes on)\b",
    re.IGNORECASE,
)
"""Phrases that had to be read twice; CONTRIBUTING.md says how to write."""


def test_no_phrase_has_to_be_read_twice(root: Path) -> None:
    folders = (
        "src",
        "rules",
        "workflow",
        "config",
        "profiles",
        "tools",
        "docs",
        "benchmarks",
    )
    suffixes = (".py", ".smk", ".yaml", ".md", ".j2", ".rst", ".sh")
    files = [path for folder in folders for path in (root / folder).rglob("*")]
    for path in [*root.glob("*.md"), *root.glob("*.yaml"), *files]:
        if path.suffix in suffixes and "notes" not in path.parts:
            found = ODD.search(path.read_text("utf-8"))
            assert found is None, f"{path.relative_to(root)}: {found and found[0]}"


def test_a_recording_shows_the_lines_that_match_as_they_stood_at_the_end() -> None:
    command = r"printf '10%%\r100%% done\nnext\n'"
    drawn = record_terminal.picture([(command, record_terminal.run(command))], "done")
    assert "100%&#160;done" in drawn
    assert ">10%" not in drawn
    assert ">next" not in drawn
    assert "font-face" not in drawn  # nothing is fetched from elsewhere
