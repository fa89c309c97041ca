"""Every command shows an example of itself, and shells complete all of them."""

import argparse
import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from convs2s.cli.main import EXAMPLES, commands_below, examples_in, whole_parser
from tests.unit.conftest import Terminal


def leaves(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str]]:
    """Yield each command that does something, and its help."""
    below = commands_below(parser)
    for word, one in below.items():
        yield from leaves(one, f"{name} {word}")
    if not below:
        yield name, parser.format_help()


@pytest.mark.parametrize(("command", "text"), [*leaves(whole_parser(), "convs2s")])
def test_the_help_of_a_command_has_an_example_and_its_exit_codes(
    command: str, text: str
) -> None:
    shown = text.partition("\nexamples:\n")[2]
    assert re.search(rf"^  .*\b{command} ", shown, re.MULTILINE), text
    assert "exit codes: 0 done; 1 an error" in shown


def test_every_example_is_understood() -> None:
    examples = examples_in(EXAMPLES)
    assert len(examples) > 15
    for example in examples:
        words = shlex.split(example.replace("\\\n", " "), comments=True)
        for start in (place for place, word in enumerate(words) if word == "convs2s"):
            end = next(
                (i for i, w in enumerate(words) if i > start and w in "<>|"), len(words)
            )
            whole_parser().parse_args(words[start + 1 : end])


def test_descriptions_are_wrapped() -> None:
    lines = commands_below(whole_parser())["translate"].format_help().splitlines()
    assert max(map(len, (line for line in lines if "convs2s" not in line))) <= 100


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("convs2s trans", "translate"),
        ("convs2s translate --be", "--beam"),
        ("convs2s score ro", "rouge"),
        ("convs2s translate --device cu", "cuda"),
    ],
)
def test_bash_completes(run: Terminal, typed: str, found: str) -> None:
    script = run("completion", "bash")
    words = typed.split()
    bound = re.search(r"^complete .*-F (\S+) convs2s$", script, re.MULTILINE)
    assert bound
    program = f"""{script}
COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}
{bound[1]} convs2s {words[-1]} {words[-2]}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=True
    )
    assert found in done.stdout.split()
