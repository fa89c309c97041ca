"""Copies of a training's states in another place, for jobs whose machines share no disk.

Snakemake's storage plugins store the outputs of a job that ended well. The states of one that was
killed are none, so the trainer brings them there itself (docs/cloud.md).
"""

from dataclasses import dataclass
from pathlib import Path

import fsspec

from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path
from convs2s.training.log import log


@dataclass(frozen=True)
class StateCopies:
    """Where the states of one training are kept as well."""

    place: str  # a folder, or a URL that fsspec knows, such as s3://BUCKET/states
    training: str  # the fingerprint of the training

    def fetch(self, folder: Path) -> None:
        """Bring the states that are there into a folder that has no last one.

        A UserError says that the place cannot be read.
        """
        if (folder / "last.safetensors").is_file():
            return
        try:
            files, root = fsspec.core.url_to_fs(f"{self.place}/{self.training}")
            there = files.find(root) if files.exists(root) else []
            # The last state comes last: with it, the others count.
            for path in sorted(there, key=lambda path: path.endswith("/last.safetensors")):
                with atomic_path(folder / Path(path).name) as partial:
                    files.get_file(path, str(partial))
        except (OSError, ValueError, ImportError) as error:
            raise UserError(f"states: {self.place}: cannot be read: {error}") from None
        if there:
            log(f"fetched {len(there)} files of states from {self.place}/{self.training}")

    def keep(self, state: Path) -> None:
        """Copy a state there; where that fails, a line says so, and training goes on."""
        try:
            files, root = fsspec.core.url_to_fs(f"{self.place}/{self.training}")
            files.makedirs(root, exist_ok=True)
            files.put_file(str(state), f"{root}/.{state.name}.part")
            files.mv(f"{root}/.{state.name}.part", f"{root}/{state.name}")
        except (OSError, ValueError, ImportError) as error:
            log(f"warning: states: {self.place}: {state.name} is not copied: {error}")
