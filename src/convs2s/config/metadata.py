"""What files and numbers of a task say of it: plain data, ``model_dump()`` and back."""

from convs2s.config.corpus import Languages
from convs2s.config.fields import Items
from convs2s.config.preparation import CleanLimits
from convs2s.config.section import Section
from convs2s.config.vocabulary import VocabularySettings


class ModelMetadata(Section):
    """What a model file says of its task."""

    task: str
    """Name of the task that the model was trained for."""
    languages: Languages
    """Codes of the two languages."""
    preparation: str
    """Name of the recipe from raw text to the words that the model's vocabulary splits."""


class DataSource(Section):
    """A file that text came from, and what config/downloads.yaml knows of it."""

    file: str
    """Path or URL, with #MEMBER for a file of an archive."""
    sha256: str | None = None
    """SHA-256 of the file, or of the archive; null where not known beforehand."""
    md5: str | None = None
    """MD5 likewise."""
    licence: str | None = None
    """Terms of use, as far as known."""


class DatasetMetadata(ModelMetadata):
    """What a token store's reader must know of its text."""

    vocabulary: VocabularySettings
    """What a token is."""
    sources: Items[DataSource] = ()
    """Where the training and validation text came from."""
    stand_in: str | None = None
    """What the data really is; None: it is the paper's."""


class CorpusMetadata(Section):
    """What stands beside the numbers of a corpus's pairs."""

    task: str
    """Name of the task whose corpus it is."""
    clean: CleanLimits
    """Training pairs that were kept."""
    paper_pairs: int | None
    """Training pairs that the paper states."""
    stand_in: str | None
    """What the data really is; None: it is the paper's."""
