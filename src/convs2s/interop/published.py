"""Fetch published models by their names, and convert those of fairseq to our model files."""

from collections.abc import Sequence
from pathlib import Path

from convs2s.config.corpus import PreparationRecipes
from convs2s.config.file_reference import local_path
from convs2s.config.messages import validated
from convs2s.config.published import PublishedModel
from convs2s.config.section import Section
from convs2s.config.yaml_file import read_yaml
from convs2s.download.download import download_file
from convs2s.files.cache import cache_folder

REGISTRY = Path(__file__).with_name("data") / "models_published.yaml"


class _Registry(Section):
    models: dict[str, PublishedModel]


def published_models() -> dict[str, PublishedModel]:
    """Return the models of config/models_published.yaml by their names."""
    name = "config/models_published.yaml"  # the file's path in the repository, for messages
    stated = {"models": read_yaml(REGISTRY, name)}
    return validated(_Registry, stated, name).models


def file_of(model: PublishedModel) -> Path:
    """Return the path in the user's cache folder where `get_model` puts the model file."""
    path = local_path(model.url, cache_folder() / "models")
    return path.with_name(f"{path.name}.safetensors") if model.fairseq else path


def get_model(model: PublishedModel, mirrors: Sequence[str] = ()) -> Path:
    """Fetch a model if it is not in the cache, convert it if it is fairseq's, and return its file.

    ``mirrors`` are asked before the model's own address, as by `download_file`. If the SHA-256 is
    not known, that of the first download is recorded beside the file. The archive of a converted
    model is removed.

    Raises:
        UserError: no source has the file, or a file of fairseq is not the model that was expected.
    """
    file = file_of(model)
    if file.is_file():
        return file
    download = local_path(model.url, cache_folder() / "models")
    if model.fairseq is not None:
        # This needs torch. Imported here, it is missed before anything is downloaded.
        from convs2s.interop.fairseq import import_released
    download_file(
        model.url,
        download,
        mirrors=mirrors,
        sha256=model.sha256,
        md5=model.md5,
        size=model.bytes,
    )
    if model.fairseq is None:
        return file
    members = model.fairseq.model_dump(exclude_none=True)
    import_released(
        references={key: f"{model.url}#{name}" for key, name in members.items()},
        files={model.url: download},
        output=file,
        task=model.tasks[0],  # the description of a model file names only one task
        languages=model.languages.model_dump(),
        preparation=PreparationRecipes().test,  # the default recipe for lines to translate
    )
    download.unlink()
    return file
