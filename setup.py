"""What the wheel says of its repository, which the variable REPOSITORY_URL names.

A page that is read elsewhere, such as on the package index, needs links with an address.
"""

import os
import re
import runpy
from pathlib import Path

from setuptools import setup

FOLDER = Path(__file__).parent
VERSION = runpy.run_path(str(FOLDER / "src/convs2s/__init__.py"))["__version__"]
URL = os.environ.get("REPOSITORY_URL", "")
PAGES = {
    "Source": URL,
    "Documentation": f"{URL}/blob/v{VERSION}/docs/install.md",
    "Changelog": f"{URL}/blob/v{VERSION}/CHANGELOG.md",
    "Issues": f"{URL}/issues",
}


def absolute(link: re.Match[str]) -> str:
    """Return a link to a file of the repository with its address, at this version."""
    kind = "raw" if link[1].endswith((".png", ".svg")) else "blob"
    return f"]({URL}/{kind}/v{VERSION}/{link[1]})"


text = (FOLDER / "README.md").read_text("utf-8")
setup(
    long_description=re.sub(r"\]\((?!https?:|#)([^)]+)\)", absolute, text)
    if URL
    else text,
    long_description_content_type="text/markdown",
    project_urls=PAGES if URL else {},
)
