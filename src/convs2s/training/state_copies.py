"""Copy the states of a training to another place, for jobs on machines that share no disk.

Snakemake's storage plugins store only the outputs of successful jobs. The states of a job that was
killed are not among these, so the trainer copies its states itself (docs/cloud.md).
"""

from dataclasses import dataclass
from pathlib import Path

import fsspec

from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path
from convs2s.training.log import log


@dataclass(frozen=True)
class StateCopies:
    """The copies of the states of one training, in the folder ``place``/``training``."""

    place: str  # a folder, or a URL that fsspec knows, such as s3://BUCKET/states
    training: str  # the fingerprint of the training

    def fetch(self, folder: Path) -> None:
        """Copy the states from the other place into ``folder``, unless it has a last state.

        Raises:
            UserError: The other place cannot be read.
        """
        if (folder / "last.safetensors").is_file():
            return
        try:
            files, root = fsspec.core.url_to_fs(f"{self.place}/{self.training}")
            found = files.find(root) if files.exists(root) else []
            # Copy the last state last. If this process is killed before, the next try fetches
            # all files again.
            for path in sorted(
                found, key=lambda path: path.endswith("/last.safetensors")
            ):
                with atomic_path(folder / Path(path).name) as partial:
                    files.get_file(path, str(partial))
        except (OSError, ValueError, ImportError) as error:
            raise UserError(f"states: {self.place}: cannot be read: {error}") from None
        if found:
            log(
                f"fetched {len(found)} files of states from {self.place}/{self.training}"
            )

    def keep(self, state: Path) -> None:
        """Copy a state to the other place; if this fails, log a warning, so the training goes on.

        The file is copied under another name and renamed, so a copy is always complete.
        """
        try:
            files, root = fsspec.core.url_to_fs(f"{self.place}/{self.training}")
            files.makedirs(root, exist_ok=True)
            files.put_file(str(state), f"{root}/.{state.name}.part")
            files.mv(f"{root}/.{state.name}.part", f"{root}/{state.name}")
        except (OSError, ValueError, ImportError) as error:
            log(
                f"warning: {state.name} is not copied to {self.place} (states): {error}"
            )
