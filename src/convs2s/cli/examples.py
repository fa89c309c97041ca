"""The help of each command: an example of it, and what its exit codes mean."""

import argparse
import re

EXIT_CODES = (
    "exit codes: 0 done; 1 an error, said in one line; 2 options that are unknown, missing or of\n"
    "  another form; 75 stopped in good order before the end: the same command goes on;\n"
    "  130 Ctrl-C, of a command that has nothing to go on with"
)


class HelpWithExamples(argparse.HelpFormatter):
    """Wraps what describes a command, and leaves a text that has lines of its own as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def add_examples(parser: argparse.ArgumentParser, examples: str, command: str = "") -> None:
    """End the help of a command, and of those below it, with the examples that are of it.

    Args:
        parser: the command's, with all commands below it.
        examples: a line for each, indented; one that ends in a backslash goes on in the next.
        command: its name as it is typed, without the program's; empty for the program itself.
    """
    typed = f"convs2s {command}".rstrip()
    found = [one for one in examples_in(examples) if re.search(rf"\b{typed}(?!\S)", one)]
    parser.formatter_class = HelpWithExamples
    parser.epilog = parser.epilog or "\n".join(["examples:", *found, "", EXIT_CODES])
    for name, below in commands_below(parser).items():
        add_examples(below, examples, f"{command} {name}".lstrip())


def examples_in(text: str) -> list[str]:
    """Return the commands of a text of examples, those of several lines in one piece."""
    return re.findall(r"^(  \S(?:.*\\\n)*.*)$", text, re.MULTILINE)


def commands_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a parser by their names; none where it has options alone."""
    actions = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return {name: below for action in actions for name, below in action.choices.items()}
