"""What figures say, read from their files."""

from pathlib import Path
from xml.etree import ElementTree


def svg_texts(path: Path) -> set[str]:
    """Return every text of an SVG, which is well-formed XML, and each line of those of several."""
    return {
        "".join(element.itertext()).strip()
        for element in ElementTree.parse(path).iter()
        if element.tag.endswith(("2000/svg}text", "2000/svg}tspan"))
    }
