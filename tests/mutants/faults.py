"""The faults of tests/mutants/faults: what each changes, and which tests are there to find it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).with_name("faults")


@dataclass(frozen=True)
class Edit:
    """A change of one file.

    Attributes:
        file: from the repository's root.
        old: text that the file holds exactly once.
        new: what stands in its place.
    """

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Change the file below ``root``."""
        path = root / self.file
        path.write_text(path.read_text("utf-8").replace(self.old, self.new), "utf-8")


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        area: the file of faults that it is in.
        name: what is wrong, in words.
        edits: most faults are one.
        tests: test files, or tests in them, one of which has to fail.
        then: further tests, each tuple for where those before miss it. Where there are any,
            tests that cannot run, or never end, find it as well.
    """

    area: str
    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    then: tuple[tuple[str, ...], ...] = ()

    def is_meant_by(self, words: Sequence[str]) -> bool:
        """Return whether one of the words is the area, or a part of the name."""
        return any(word == self.area or word in self.name for word in words)


def read_faults() -> list[Fault]:
    """Return all faults, file by file."""
    faults = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for stated in yaml.safe_load(path.read_text("utf-8")):
            name, tests = stated.pop("fault"), tuple(stated.pop("tests"))
            edits = tuple(Edit(**edit) for edit in stated.get("edits", [stated]))
            faults.append(Fault(path.stem, name, edits, tests))
    return faults
