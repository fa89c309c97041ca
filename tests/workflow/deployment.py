"""The workflow as others deploy it: from a git repository under the URL of a host, as a module."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

from tests.support.checkout import Checkout, check_out

TAG = "v1"
URL = "https://github.com/owner/convs2s"

# A workflow of somebody's own, with the demo's score among its inputs.
OUTER = """\
configfile: "config/outer.yaml"


module convs2s:
    snakefile:
        {source}
    config:
        config["translation"]
{more}

use rule * from convs2s as {names}
"""


@dataclass(frozen=True)
class Repository:
    """A git repository of the workflow, and what lets git find it under the URL of a host."""

    folder: Path
    hosts: dict[str, str]

    @property
    def gitfile(self) -> str:
        """What a module names as its Snakefile, in a clone, by a tag."""
        return f'gitfile("{self.folder}", path="workflow/Snakefile", tag="{TAG}")'

    @property
    def path(self) -> str:
        """The same as a path, with no git in it."""
        return f'"{self.folder}/workflow/Snakefile"'

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which git and Snakemake use no host but this machine."""
        return {**os.environ, **self.hosts}

    def copy_settings(self, outer: Checkout) -> None:
        """Copy what a git source does not bring, as snakedeploy does."""
        for name in ("config", "profiles/default"):
            copytree(self.folder / name, outer / name, dirs_exist_ok=True)


def make_repository(root: Path, parent: Path) -> Repository:
    """Commit and tag the workflow as it stands."""
    folder = check_out(root, parent / "host/owner").folder
    hosts = f'[url "file://{parent}/host/"]\n    insteadOf = https://github.com/\n'
    (parent / "gitconfig").write_text(f"[user]\n    name = a\n    email = a@b\n{hosts}")
    hosts_file = {"GIT_CONFIG_GLOBAL": str(parent / "gitconfig")}
    repository = Repository(
        folder, {**hosts_file, "XDG_CACHE_HOME": str(parent / "cache")}
    )
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["commit", "-qm", "all"],
        ["tag", TAG],
    ):
        git(folder, *command, environment=repository.environment)
    return repository


def git(folder: Path, *command: str, environment: dict[str, str] | None = None) -> str:
    """Run git in a folder; return what it prints."""
    return subprocess.run(
        ["git", *command],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def outer_workflow(
    folder: Path, source: str, config: str, *, more: str = "", names: str = "*"
) -> Checkout:
    """Write a workflow that has this one as a module; ``config`` is YAML on one line."""
    outer = Checkout(folder)
    indented = "".join(f"    {line}\n" for line in more.splitlines())
    outer.write("Snakefile", OUTER.format(source=source, more=indented, names=names))
    outer.write("config/outer.yaml", f"translation: {config}\nsamples: [mine]\n")
    return outer
