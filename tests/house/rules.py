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


def environment(rule: str) -> str | None:
    """Return the name of the conda environment that a rule states, if it states one."""
    stated = re.search(r'environment\("(\w+)"\)', rule)
    return stated and stated[1]


def script(rule: str) -> str | None:
    """Return the file name of the script that a rule states, if it states one."""
    stated = re.search(r'"\.\./workflow/scripts/(\w+\.py)"', rule)
    return stated and stated[1]


def label(rule: str) -> str:
    """Return what a message calls a rule: its name."""
    stated = re.match(r" *(?:use rule \w+ as|rule|checkpoint) (\w+)", rule)
    assert stated, rule
    return stated[1]
