"""Hooks of the site (mkdocs.yml): it has the root's pages; other links lead to the repository.

On GitHub the same pages link each other and the repository's files as they stand.
"""

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
}
"""A page of the root -> its place on the site."""
REPORT = ROOT / "results/scales/multi30k_trained/paper/report.html"
"""The report of the published runs, which `make docs` writes before it builds the site."""
LIVE = "live_report.html"
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#]*)(#[^)]*)?\)")
"""A link to a file: its text, its path and its anchor."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, of which README.md is the start, and the report."""
    for page, place in PAGES.items():
        text = _linked((ROOT / page).read_text("utf-8"), ROOT, config)
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, LIVE, abs_src_path=str(REPORT)))
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Let links to files outside of docs/ lead to the repository, and add one to the report."""
    source = page.file.abs_src_path
    if not source:
        return markdown
    markdown = _linked(markdown, Path(source).parent, config)
    if page.file.src_uri == "report.md":
        markdown += f"\nThis site has [the report of the published runs]({LIVE}).\n"
    return markdown


def _linked(markdown: str, folder: Path, config: MkDocsConfig) -> str:
    """Return a page of a folder with its links as the site needs them.

    Raises:
        PluginError: a file that is linked does not exist.
    """
    docs = Path(config.docs_dir)

    def link(match: re.Match[str]) -> str:
        text, path, anchor = match.groups(default="")
        target = (folder / path).resolve()
        if not target.exists():
            raise PluginError(f"{match[0]}: no such file: {target}")
        if target.parent == ROOT and target.name in PAGES:
            up = "" if folder == ROOT else os.path.relpath(docs, folder) + "/"
            return f"[{text}]({up}{PAGES[target.name]}{anchor})"
        if target.is_relative_to(docs):
            path = os.path.relpath(target, docs if folder == ROOT else folder)
            return f"[{text}]({path}{anchor})"
        place = target.relative_to(ROOT)
        return (
            f"[{text}]({config.repo_url}/blob/main/{place}{anchor})"
            if config.repo_url
            else text
        )

    return LINK.sub(link, markdown)
