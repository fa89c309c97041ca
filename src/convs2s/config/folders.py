"""Where the files of the configuration lie."""

from dataclasses import dataclass
from pathlib import Path

from convs2s.errors import UserError


@dataclass(frozen=True)
class ConfigurationFolders:
    """The folder of config.yaml and config/, and the workflow's own for what is not there.

    Attributes:
        own: the user's folder, mostly that of the run.
        shipped: the folder of a deployed workflow; None where nothing stands in for a file.
    """

    own: Path
    shipped: Path | None = None

    def find(self, file: str) -> Path:
        """Return where a file lies: the user's own, else what came with the workflow."""
        own = self.own / file
        return own if self.shipped is None or own.exists() else self.shipped / file

    def names(self, folder: str) -> list[str]:
        """Return the names of all YAML files of a folder, the user's own and those that came.

        Raises:
            UserError: a file has another suffix for YAML, so that nothing would be read of it.
        """
        places = [place for place in (self.own, self.shipped) if place]
        for file in (self.own / folder).glob("*.yml"):
            raise UserError(f"{folder}/{file.name}: is not read: rename it to {file.stem}.yaml")
        return sorted({file.stem for place in places for file in (place / folder).glob("*.yaml")})
