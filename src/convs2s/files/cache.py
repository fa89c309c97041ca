"""The folder of files that this program can make or download again."""

import os
from pathlib import Path

from convs2s.errors import UserError


def cache_folder() -> Path:
    """Return the user's cache folder for this program, which may not exist yet.

    Raises:
        UserError: the user has no home folder, as in some containers, and XDG_CACHE_HOME is unset.
    """
    stated = os.environ.get("XDG_CACHE_HOME")
    if stated:
        return Path(stated) / "convs2s"
    try:
        return Path.home() / ".cache" / "convs2s"
    except RuntimeError:
        raise UserError(
            "there is no folder for cached files, because the user has no home folder: set the "
            "environment variable XDG_CACHE_HOME"
        ) from None
