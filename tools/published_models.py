"""Print the entries of config/models_published.yaml for model files that are to be released.

``python tools/published_models.py ADDRESS FILE...``: they will be at ADDRESS/NAME. The license is
that of the training text: who releases a model decides on its own.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from convs2s.config.published import PublishedModel
from convs2s.files.checksums import sha256
from convs2s.model_file import describe_model


def entry(address: str, model: Path) -> PublishedModel:
    """Return the entry of a model file."""
    description = describe_model(model)
    licences = set()
    sources: Any = description.training.get("sources", [])
    for source in sources:
        licence = source.get("licence") or "LicenseRef-Unknown"
        licences.add(licence.partition(":")[0])
    stated = {
        "url": f"{address}/{model.name}",
        "bytes": model.stat().st_size,
        "sha256": sha256(model),
        "licence": " AND ".join(sorted(licences)) or None,
        "languages": description.languages,
        "tasks": (description.task,),
    }
    return PublishedModel.model_validate(stated)


if __name__ == "__main__":
    entries = {}
    for name in sys.argv[2:]:
        path = Path(name)
        entries[path.stem] = entry(sys.argv[1], path).model_dump(
            mode="json", exclude_none=True
        )
    print(yaml.safe_dump(entries, sort_keys=False), end="")
