"""What figures say, read from their files."""

from pathlib import Path
from xml.etree import ElementTree


def svg_texts(path: Path) -> set[str]:
    """Return every text of an SVG, which is well-formed XML, and each line of those of several."""
    root = ElementTree.parse(path)
    elements = [
        element
        for name in ("text", "tspan")
        for element in root.iter(f"{{http://www.w3.org/2000/svg}}{name}")
    ]
    return {"".join(element.itertext()).strip() for element in elements}
