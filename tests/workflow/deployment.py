"""The workflow as others deploy it: from a git repository under the URL of a host, as a module."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.checkout import Checkout, check_out

TAG = "v1"

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
    """A git repository of the workflow, which git finds under the URL of a host."""

    folder: Path
    environment: dict[str, str]
    """The variables with which git and Snakemake use no host but this machine."""

    @property
    def gitfile(self) -> str:
        """What a module names as its Snakefile, in a clone, by a tag."""
        return f'gitfile("{self.folder}", path="workflow/Snakefile", tag="{TAG}")'

    @property
    def path(self) -> str:
        """The same as a path, with no git in it."""
        return f'"{self.folder}/workflow/Snakefile"'


def make_repository(root: Path, parent: Path) -> Repository:
    """Commit and tag the workflow as it stands."""
    folder = check_out(root, parent / "host/owner").folder
    hosts = f'[url "file://{parent}/host/"]\n    insteadOf = https://github.com/\n'
    (parent / "gitconfig").write_text(f"[user]\n    name = a\n    email = a@b\n{hosts}")
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": str(parent / "gitconfig"),
        "XDG_CACHE_HOME": str(parent / "cache"),
    }
    commit = f"git init --quiet; git add .; git commit -qm all; git tag {TAG}"
    subprocess.run(["sh", "-ec", commit], cwd=folder, env=environment, check=True)
    return Repository(folder, environment)


def outer_workflow(
    folder: Path, source: str, config: str, *, more: str = "", names: str = "*"
) -> Checkout:
    """Write a workflow that has this one as a module; ``config`` is YAML on one line."""
    outer = Checkout(folder)
    text = OUTER.format(source=source, more=f"    {more}\n", names=names)
    outer.write("Snakefile", text)
    outer.write("config/outer.yaml", f"translation: {config}\nsamples: [mine]\n")
    return outer
