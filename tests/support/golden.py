"""What the original tools computed from this project's own text: tests/reference/data."""

from pathlib import Path

from convs2s.files.text import read_lines

DATA = Path(__file__).resolve().parents[1] / "reference" / "data"


def plain_or_packed(folder: Path, name: str) -> Path:
    """Return the path of a text file, which may be there in a compressed form."""
    path = folder / name
    return path if path.exists() else path.with_name(f"{name}.gz")


def golden_lines(folder: Path, name: str) -> list[str]:
    """Return the lines of a text file, which may be there in a compressed form."""
    return list(read_lines(plain_or_packed(folder, name)))
