"""The entries of config/models_published.yaml: trained models that anybody can fetch."""

from convs2s.config.corpus import Languages
from convs2s.config.file_reference import Download, Url
from convs2s.config.section import SomeItems
from convs2s.config.task import ReleasedModel


class PublishedModel(Download):
    """A trained model that `convs2s get NAME` fetches, from anywhere and without a clone."""

    url: Url
    """Address of the model file, or of the archive of a fairseq model."""
    languages: Languages
    """The languages from which and into which the model translates."""
    tasks: SomeItems[str]
    """The tasks in config/tasks on whose training text the model was trained."""
    fairseq: ReleasedModel | None = None
    """The files of a fairseq model, as members of the archive; null: url is the address of a model
    file."""
