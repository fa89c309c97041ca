"""How much memory a command takes."""

import subprocess
import sys

_WATCHED = """
import re, resource, sys
from pathlib import Path
from convs2s.cli.main import main

main(sys.argv[1:])
# A process's ru_maxrss begins at that of the one which started it: VmHWM does not.
own = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
print(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


def peak_memory(*arguments: object) -> int:
    """Return the most kilobytes that ``convs2s`` or one of its workers had resident."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return max(map(int, done.stderr.splitlines()[-1].split()))
