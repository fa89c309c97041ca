"""The recordings of a terminal on the pages: commands as typed, with what they print, as SVG.

    python tools/record_terminal.py docs/images/demo.svg 'BLEU|epoch 7/7' 'make demo'

runs the commands in a pseudo-terminal and keeps the lines that match the pattern.
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 126  # columns
CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhlsu]")
"""Control sequences that move the cursor or clear; those of color stay."""
FONTS = re.compile(r" *@font-face \{.*?\}\n", re.DOTALL)


def main() -> None:
    """Run the commands and write the picture."""
    output, pattern, *commands = sys.argv[1:]
    typed = [(command, run(command)) for command in commands]
    Path(output).write_text(picture(typed, pattern), "utf-8")


def run(command: str) -> list[Text]:
    """Return the lines that a command prints on a terminal, each as it stood at the end."""
    reader, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        ["bash", "-c", command],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
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


def picture(typed: Iterable[tuple[str, Iterable[Text]]], pattern: str) -> str:
    """Return commands, and the lines that they print and a pattern matches, as SVG."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for command, lines in typed:
            console.print(Text(f"$ {command}", style="bold green"))
            for line in lines:
                if re.search(pattern, line.plain):
                    console.print(line)
        # Without fonts that a browser would fetch.
        return FONTS.sub("", console.export_svg(title=""))


if __name__ == "__main__":
    main()
