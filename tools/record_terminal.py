"""The recordings of a terminal on the pages: commands as typed, with what they print, as SVG.

    python tools/record_terminal.py docs/images/demo.svg 14 30 'make demo'

runs the commands in a pseudo-terminal and keeps the first 14 and the last 30 lines of each.
"""

import argparse
import os
import pty
import re
import subprocess
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100  # columns
CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhlsu]")
"""Control sequences that move the cursor or clear; those of color stay."""


def main() -> None:
    """Run the commands and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("commands", nargs="+")
    arguments = parser.parse_args()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for command in arguments.commands:
            console.print(Text(f"$ {command}", style="bold"))
            for line in excerpt(run(command), arguments.first, arguments.last):
                console.print(line)
        console.save_svg(str(arguments.output), title="", font_aspect_ratio=0.6)


def run(command: str) -> list[Text]:
    """Return the lines that a command prints on a terminal, each as it stood at the end."""
    reader, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        ["bash", "-c", command], stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    printed = bytearray()
    try:
        while part := os.read(reader, 65536):
            printed += part
    except OSError:  # Linux: every process has closed the terminal
        pass
    os.close(reader)
    process.wait()
    text = CURSOR.sub("", printed.decode("utf-8", "replace").replace("\r\n", "\n"))
    return [Text.from_ansi(line.rpartition("\r")[2]) for line in text.splitlines()]


def excerpt(lines: list[Text], first: int, last: int) -> list[Text]:
    """Return the first and the last lines, and between them how many are left out."""
    if len(lines) <= first + last:
        return lines
    left_out = Text(f"... {len(lines) - first - last} lines ...", style="italic")
    return [*lines[:first], left_out, *lines[-last:]]


if __name__ == "__main__":
    main()
