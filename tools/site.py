"""Hooks of the site (mkdocs.yml): README is its start; links out of docs/ lead to the repository.

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
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#]*)(#[^)]*)?\)")
"""A link to a file: its text, its path and its anchor."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README.md as the start."""
    readme = (ROOT / "README.md").read_text("utf-8")
    files.append(File.generated(config, "index.md", content=_linked(readme, ROOT, config)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files outside of docs/ lead to the repository."""
    source = page.file.abs_src_path
    return _linked(markdown, Path(source).parent, config) if source else markdown


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
        if target == ROOT / "README.md":
            return f"[{text}](index.md{anchor})"
        if target.is_relative_to(docs):
            path = os.path.relpath(target, docs if folder == ROOT else folder)
            return f"[{text}]({path}{anchor})"
        place = target.relative_to(ROOT)
        return f"[{text}]({config.repo_url}/blob/main/{place}{anchor})" if config.repo_url else text

    return LINK.sub(link, markdown)
