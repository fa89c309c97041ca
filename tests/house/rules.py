"""The rules of the workflow, as their files state them."""

import re
from pathlib import Path

_HEAD = r"^( *)(?:rule|checkpoint|use rule)\b.*:"
_RULE = re.compile(_HEAD + r"\n(?:(?:\1 +.*)?\n)*", re.MULTILINE)


def rules(root: Path) -> list[str]:
    """Return the text of each rule."""
    files = [path.read_text("utf-8") for path in sorted(root.glob("rules/*.smk"))]
    found = [match[0].rstrip() for text in files for match in _RULE.finditer(text)]
    assert len(found) == sum(
        len(re.findall(f"{_HEAD}$", text, re.MULTILINE)) for text in files
    )
    return found


def stated(pattern: str, rule: str) -> str | None:
    """Return the first group of a pattern, where a rule has it."""
    found = re.search(pattern, rule, re.MULTILINE)
    return found and found[1]


def environment(rule: str) -> str | None:
    """Return the name of the conda environment that a rule states, if it states one."""
    return stated(r'environment\("(\w+)"\)', rule)


def script(rule: str) -> str | None:
    """Return the file name of the script that a rule states, if it states one."""
    return stated(r'"\.\./workflow/scripts/(\w+\.py)"', rule)


def label(rule: str) -> str:
    """Return what a message calls a rule: its name."""
    return stated(r"\A *(?:use rule \w+ as|rule|checkpoint) (\w+)", rule) or rule
