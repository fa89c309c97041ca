"""How far the alignment of one direction is, so that a killed one goes on from there.

The workflow deletes a failed job's outputs, so what is kept lies in a folder beside them that no
rule declares, in a file named by a digest of everything that the links depend on.
"""

import hashlib
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import atomic_path

KeptArray = NDArray[np.generic]
"""An array of a type that its reader knows."""

_IDENTITY = "identity"


class AlignmentState:
    """The arrays that an aligner had at the end of its last round, in one file."""

    def __init__(self, folder: Path, depends_on: Iterable[bytes | memoryview]) -> None:
        """Name the file.

        Args:
            folder: where it lies; it need not be there.
            depends_on: what decides the links: both sides and the code. numpy's version counts as
                well, as the last bits of its functions do.
        """
        digest = hashlib.sha256(np.__version__.encode())
        for part in depends_on:
            digest.update(hashlib.sha256(part).digest())
        self._identity = digest.hexdigest()
        self._path = folder / f"{self._identity[:16]}.npz"

    def keep(self, **arrays: ArrayLike) -> None:
        """Keep these arrays in place of those before.

        Raises:
            UserError: the file cannot be written, most likely as the disk is full.
        """
        with atomic_path(self._path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays, **{_IDENTITY: self._identity})

    def kept(self) -> dict[str, KeptArray]:
        """Return what was kept; nothing where that is damaged, which is said, or nothing was."""
        if not self._path.exists():
            return {}
        try:
            return self._read()
        except UserError as error:
            print(f"{error}; this direction is aligned from the beginning", file=sys.stderr)
            return {}

    def _read(self) -> dict[str, KeptArray]:
        with (
            failures_of_file(str(self._path), "not as it was written"),
            np.load(self._path, allow_pickle=False) as stored,
        ):
            arrays = {name: stored[name] for name in stored.files}  # each has its checksum
            if str(arrays.pop(_IDENTITY)) != self._identity:
                raise UserError(f"{self._path}: of another text or code")
        return arrays


def state_folder(links: Path) -> Path:
    """Return where the states of an alignment lie, beside its output."""
    return links.with_name(f"{links.name}.state")


def remove_states(folder: Path) -> None:
    """Remove the states of an alignment that has ended, and what kills have left beside them."""
    if folder.exists():
        shutil.rmtree(folder)
