"""What figures say, read from their files."""

from pathlib import Path
from xml.etree import ElementTree


def svg_texts(path: Path) -> set[str]:
    """Return every text of an SVG, which is well-formed XML."""
    elements = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(element.itertext()).strip() for element in elements}
