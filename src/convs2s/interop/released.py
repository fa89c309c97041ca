"""A released model, from the archive that its authors published to a model file."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from convs2s.config.file_reference import parse_file_reference
from convs2s.download.archives import open_member
from convs2s.files.atomic import scratch_folder, writing
from convs2s.interop.fairseq import FairseqFiles, import_fairseq


def import_released(
    *,
    references: Mapping[str, str | None],
    downloads: Path,
    output: Path,
    task: str,
    languages: Mapping[str, str],
    preparation: str,
) -> None:
    """Write the model file of a task's released model.

    Args:
        references: the section ``released`` of a task: model, dictionaries and BPE codes.
        downloads: the folder where what is referred to by URL has been put.
        output: the model file to write.
        task: see ``import_fairseq``; languages and preparation likewise.
        languages: see ``task``.
        preparation: see ``task``.

    Raises:
        UserError: a file or member is missing or refused; the disk is full or read-only, or such.
    """
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(output.parent) as folder:
            given = {key: one for key, one in references.items() if one}
            paths = {key: _copy(one, downloads, folder / key) for key, one in given.items()}
            files = FairseqFiles(
                paths["model"],
                paths["source_dictionary"],
                paths["target_dictionary"],
                paths.get("bpe_codes"),
            )
            import_fairseq(files, output, task=task, languages=languages, preparation=preparation)


def _copy(reference: str, downloads: Path, path: Path) -> Path:
    """Copy a referenced file or member to a path of its own: checkpoints are read in any order."""
    parsed = parse_file_reference(reference)
    with open_member(parsed.path(downloads), parsed.member) as stream, path.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    return path
