"""Each command of Snakemake on a page plans what it says, with the files that the pages show."""

import re
import shutil
from pathlib import Path

import pytest

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.load import load
from tests.contract import pages
from tests.support.checkout import Checkout, check_out
from tests.support.refusals import rows

NAMES = rows("""
TASK/rouge => arxiv_titles/rouge
TASK => demo_en_fr
TEXT => demo_en_fr
MODEL => demo
RUN => seed1
SET => test
TEST => test
DECODING => beam5
BASELINE => demo
SYSTEM => small
TARGET --config scale=mirror => results/scales/mirror/wmt14_en_fr/bleu.txt --config scale=mirror
TARGET => results/demo_en_fr/bleu.txt
""")
"""What stands for what a user fills in."""

WRITTEN = {
    "extending.md": "config.local.yaml",
    "length_penalty.md": "config/decodings.yaml",
    "operations.md": "config.local.yaml",
}
"""Where a page says that its settings are written, if their first line does not."""

EXAMPLES = {
    "models.yaml": "config/models.d/transformer.yaml",
    "exhibit.yaml": "config/paper.yaml",
}
"""What extending.md appends to which file, or makes a new file."""

ALONE = re.compile(
    r"--(profile|sdm|unlock|version|directory|default-storage-provider|report|archive"
    r"|generate-unit-tests)"
)
"""Options whose commands other tests run: of profiles, containers, conda, modules, storages."""


@pytest.fixture(scope="module")
def written(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with every file of settings that the pages show, and all text that is local."""
    checkout = check_out(root, tmp_path_factory.mktemp("written"))
    # Commands name published ledgers.
    (checkout / "docs").symlink_to(root / "docs")
    for block in pages.blocks(root):
        # The YAML of demo_corpus.md is of the package's own files.
        if block.kind != "yaml" or block.page == "demo_corpus.md":
            continue
        first = block.text.partition("\n")[0]
        if first.startswith("# config/"):
            checkout.write(first.removeprefix("# "), block.text)
        else:
            name = WRITTEN[block.page]
            assert f"`{name}`" in (root / "docs" / block.page).read_text("utf-8")
            append(checkout, name, block.text)
    shutil.copytree(root / "examples", checkout / "examples")
    for example, appended_to in EXAMPLES.items():
        append(checkout, appended_to, (root / "examples" / example).read_text("utf-8"))
    for task in load(checkout.folder).tasks.values():
        for file in map(parse_file_reference, task.references(task.splits)):
            if not file.is_url:
                checkout.write(file.location, "A line.\n")
    return checkout


def append(checkout: Checkout, name: str, text: str) -> None:
    """Append text to a file, or make it; what a page quotes is there."""
    file = checkout / name
    before = file.read_text("utf-8") if file.exists() else ""
    if text not in before:
        checkout.write(name, f"{before}\n{text}")


@pytest.fixture(scope="module")
def commands(root: Path) -> set[str]:
    found = set()
    for command in pages.snakemake_commands(root):
        for name, example in NAMES:
            command = command.replace(name, example)
        if not ALONE.search(command):
            found.add(command)
    return found


def test_every_target_plans(commands: set[str], written: Checkout) -> None:
    # Planning takes seconds: what is typed without options is planned together.
    targets = {word for one in commands if " -" not in one for word in one.split()[1:]}
    assert len(targets) > 20
    plan(written, " ".join(["snakemake", *sorted(targets)]))


@pytest.mark.slow
def test_every_command_with_options_plans(
    commands: set[str], written: Checkout
) -> None:
    with_options = sorted(one for one in commands if " -" in one)
    assert len(with_options) > 20
    for command in with_options:
        plan(written, command)


def plan(checkout: Checkout, command: str) -> None:
    dry_run = command.replace("snakemake", "snakemake --quiet --dry-run", 1)
    done = checkout.typed(dry_run)
    assert done.code == 0, f"{command}\n{done.said[-2000:]}"
