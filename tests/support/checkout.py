"""A copy of the checkout, in which a test runs commands as a user types them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

import yaml

from convs2s.pipeline.fingerprint import fingerprints
from tests.support.bare_python import without_pythonpath

_NEEDED = ".test config envs profiles rules schemas src workflow Snakefile config.yaml"


@dataclass(frozen=True)
class Done:
    """What a command said on both streams, and how it ended."""

    code: int
    said: str

    @property
    def errors(self) -> list[str]:
        """The lines in which the workflow or the command line states a fault."""
        # Snakemake ends a record's line in a write of its own: another job's error may come before.
        said = re.sub(r"(exit status \d+\.)(?=error: )", r"\1\n", self.said)
        return re.findall(r"^(?:convs2s: )?error: .*", said, re.MULTILINE)

    @property
    def planned(self) -> dict[str, int]:
        """The jobs of a run or dry run, by rule; none where nothing is to be done."""
        stats = r"^Job stats:\n.*\n[- ]+\n((?:.*\n)*?)total "
        table = re.search(stats, self.said, re.MULTILINE)
        rows = re.findall(r"(\S+) +(\d+)", table[1]) if table else []
        return {rule: int(count) for rule, count in rows}

    @property
    def nothing_to_do(self) -> bool:
        return self.code == 0 and "Nothing to be done" in self.said

    def succeeded(self) -> "Done":
        """Fail the test with the end of what the command said, where it failed."""
        assert self.code == 0, self.said[-3000:]
        return self


@dataclass(frozen=True)
class Checkout:
    """A folder with everything of the repository that a run needs."""

    folder: Path

    def __truediv__(self, path: str) -> Path:
        return self.folder / path

    def copy(self, parent: Path) -> "Checkout":
        """Copy this folder; times are kept, so that all in the copy is as up to date as here."""
        folder = parent / self.folder.name
        return Checkout(shutil.copytree(self.folder, folder, symlinks=True))

    def shell(self, command: str, environment: Mapping[str, str] = os.environ) -> Done:
        """Run a command line in this folder, with the environment's programs found first."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**environment, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        return Done(done.returncode, done.stdout)

    def typed(self, command: str, environment: Mapping[str, str] = os.environ) -> Done:
        """Run a command line of Snakemake alone, as ``shell`` does but in a fork."""
        program, *words = shlex.split(command)
        assert program == "snakemake"
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        with NamedTemporaryFile() as output:
            request = [words, str(self.folder), dict(environment), output.name]
            print(json.dumps(request), file=server.stdin, flush=True)
            return Done(int(server.stdout.readline()), output.read().decode())

    def snakemake(
        self, *arguments: str, environment: Mapping[str, str] = os.environ
    ) -> Done:
        """Run Snakemake in this folder, with two cores."""
        command = ["snakemake", "--cores", "2", *arguments]
        return self.typed(shlex.join(command), environment)

    def write(self, path: str, content: str | bytes) -> Path:
        """Write a file below this folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def with_programs(self, **programs: str) -> dict[str, str]:
        """Write programs of a shell; return an environment in which they are found first."""
        for name, text in programs.items():
            self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)
        path = f"{self / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path}

    def read(self, path: str) -> str:
        """Return the text of a file below this folder."""
        return (self / path).read_text("utf-8")

    def json(self, path: str) -> Any:
        return json.loads(self.read(path))

    def options(self) -> dict[str, Any]:
        """Return what config.local.yaml states."""
        return dict(yaml.safe_load(self.read("config.local.yaml")))

    def configure(self, options: Mapping[str, Any]) -> None:
        """Write config.local.yaml."""
        self.write("config.local.yaml", yaml.safe_dump(dict(options)))

    def files(self, path: str) -> list[str]:
        """The names of all files below a folder; logs, benchmarks, notes and locks aside."""
        left_out = re.compile(
            r".*/(logs|benchmarks)/|.*/\.[^/]*\.(lock|made|sha256|sources|try)$"
        )
        found = (file for file in (self / path).rglob("*") if file.is_file())
        names = sorted(str(file.relative_to(self.folder)) for file in found)
        return [name for name in names if not left_out.match(f"/{name}")]


def check_out(root: Path, parent: Path) -> Checkout:
    """Copy what a run needs of a repository to a new folder, with an earlier run's notes of it."""
    folder = parent / "convs2s"
    folder.mkdir(parents=True)
    ignore = shutil.ignore_patterns("*.egg-info")
    for name in _NEEDED.split():
        if (root / name).is_dir():  # of the schemas there may be none
            shutil.copytree(root / name, folder / name, symlinks=True, ignore=ignore)
        elif (root / name).is_file():
            shutil.copy(root / name, folder)
    checkout = Checkout(folder)
    checkout.write(".snakemake/convs2s/codes.json", _notes(root))
    return checkout


# Reads a request a line, and answers with the exit code. The child runs what `-m snakemake` does.
_SERVER = """
import gc, json, os, sys
import snakemake.cli
import docutils.core, jinja2, nbformat, pydantic, requests, smart_open, yaml, yte

snakemake.cli.get_argument_parser()  # imports the plugins
gc.freeze()  # or each child looks through all of this for garbage: half of a dry run's time
installed = sys.path[1:]
for line in sys.stdin:
    words, folder, environment, output = json.loads(line)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), 1)
        os.dup2(1, 2)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        stated = environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = [folder, *filter(None, stated), *installed]
        sys.argv = [snakemake.cli.__file__, *words]
        sys.orig_argv = [sys.executable, "-m", "snakemake", *words]
        sys.exit(snakemake.cli.main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _server() -> subprocess.Popen[str]:
    """Start what has imported Snakemake, half of a dry run's time; it ends with this process."""
    return subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        env=without_pythonpath(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@cache
def _notes(root: Path) -> bytes:
    """Return what a first run takes half a second to note of the code; it holds for these bytes."""
    with TemporaryDirectory() as folder:
        kept = Path(folder) / "fingerprints.json"
        fingerprints(root / "workflow/scripts", kept)
        return kept.read_bytes()
