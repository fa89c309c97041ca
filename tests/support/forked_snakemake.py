"""Snakemake in forks of a process that has imported it, which is half of the time of a dry run."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from tests.support.bare_python import without_pythonpath

# Reads a request a line, and answers with the exit code. The child runs what `-m snakemake` does.
_SERVER = """
import json, os, sys
import snakemake.cli
import docutils.core, jinja2, nbformat, pydantic, requests, smart_open, yaml, yte

snakemake.cli.get_argument_parser()  # imports the plugins
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
    """Start the process, which ends with this one."""
    return subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        env=without_pythonpath(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_snakemake(
    words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run Snakemake in a folder; return its exit code and what it says on both streams."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with NamedTemporaryFile() as output:
        request = [list(words), str(folder), dict(environment), output.name]
        print(json.dumps(request), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return code, output.read().decode()
