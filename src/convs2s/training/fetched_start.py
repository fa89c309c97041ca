"""A model to start from that lies elsewhere: beside the output of the training, once fetched."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from convs2s.config.file_reference import Download, known_download, parse_file_reference
from convs2s.config.model import Recipe
from convs2s.download.download import download_file
from convs2s.files.checksums import sha256


def fetched_start(recipe: Recipe, output: Path, downloads: Mapping[str, Download]) -> Path | None:
    """Fetch the model of ``training.start`` where it is named by a URL; return where it lies.

    It is fetched once: workers and later tries find it there, by the name of its URL.

    Args:
        recipe: of the training.
        output: the model file that the training writes.
        downloads: URL -> what is known of the file there. Where that is nothing, the checksum of
            the first download holds from then on.

    Returns:
        None where the recipe names no URL.

    Raises:
        UserError: it cannot be fetched, or is not the file that is known.
    """
    if recipe.start is None or not parse_file_reference(recipe.start.model).is_url:
        return None
    url = recipe.start.model
    known = known_download(url, downloads) or Download(url=url)
    place = output.with_name(f"start.{hashlib.sha256(url.encode()).hexdigest()[:8]}.safetensors")
    if not place.is_file() or known.sha256 not in (None, sha256(place)):
        place.parent.mkdir(parents=True, exist_ok=True)
        download_file(url, place, sha256=known.sha256, md5=known.md5, size=known.bytes)
    return place
