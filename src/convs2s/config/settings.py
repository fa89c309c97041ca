"""The whole configuration, and what of it applies to one task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from convs2s.config.claims import Claim
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.download import Download
from convs2s.config.messages import unknown
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Table
from convs2s.config.phrases import Phrases
from convs2s.config.scale import Scale
from convs2s.config.task import Task
from convs2s.config.yaml_file import Values
from convs2s.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """The whole configuration: every default filled in, ``extends`` and ``text`` resolved.

    Attributes:
        options: config.yaml.
        scale: the file of config/scales that ``options.scale`` names.
        tasks: name -> config/tasks/NAME.yaml, its headline at this scale.
        models: name -> entry of config/models.yaml.
        decodings: name -> entry of config/decodings.yaml.
        paper: name of a table or figure -> entry of config/paper.yaml.
        claims: name -> entry of config/claims.yaml.
        phrases: name -> entry of config/phrases.yaml.
        downloads: URL -> entry of config/downloads.yaml.
        costs: config/costs.yaml.
    """

    options: Options
    scale: Scale
    tasks: Mapping[str, Task]
    models: Mapping[str, ModelSettings]
    decodings: Mapping[str, DecodingSettings]
    paper: Mapping[str, Table]
    claims: Mapping[str, Claim]
    phrases: Mapping[str, Phrases]
    downloads: Mapping[str, Download]
    costs: Costs

    def placed(self, results_dir: str, downloads_dir: str, files: Mapping[str, str]) -> "Settings":
        """Return the configuration with files where a run really has them.

        Args:
            results_dir: in place of the scale's.
            downloads_dir: likewise.
            files: reference of a task -> the one that stands for it.
        """
        folders = {"results_dir": results_dir, "downloads_dir": downloads_dir}
        return replace(
            self,
            scale=self.scale.model_copy(update=folders),
            tasks={name: task.placed(files) for name, task in self.tasks.items()},
        )

    def language_pairs(self) -> dict[tuple[str, str], list[str]]:
        """Return (source, target) languages -> the tasks with a corpus of their own in them."""
        pairs: dict[tuple[str, str], list[str]] = {}
        for name, task in self.tasks.items():
            if task.text is None:
                pairs.setdefault(task.language_pair, []).append(name)
        return pairs

    def model_references(self) -> set[str]:
        """Return the model files that trainings start from or tasks take vocabularies of."""
        starts = (model.training.start for model in self.models.values())
        taken = (task.vocabulary_of for task in self.tasks.values())
        return {start.model for start in starts if start} | {model for model in taken if model}

    def task(self, name: str) -> Task:
        """Return a task.

        Raises:
            UserError: there is none of this name; the nearest known one is named.
        """
        return _named(self.tasks, "task", name)

    def model(self, name: str) -> ModelSettings:
        """Return a model.

        Raises:
            UserError: there is none of this name; the nearest known one is named.
        """
        return _named(self.models, "model", name)

    def decoding(self, name: str) -> DecodingSettings:
        """Return a decoding.

        Raises:
            UserError: there is none of this name; the nearest known one is named.
        """
        return _named(self.decodings, "decoding", name)


@dataclass(frozen=True)
class Effective:
    """Everything that applies to one task: itself, its model, its decoding, scale and options."""

    task: Task
    model_name: str
    model: ModelSettings
    decoding_name: str
    decoding: DecodingSettings
    scale: Scale
    options: Options

    def plain(self) -> dict[str, Values]:
        """Return it as plain values, for YAML: each part under its name."""
        options = self.options.model_dump(mode="json", exclude={"scale", "overrides"})
        return {
            "task": {"name": self.task.name, **self.task.model_dump(mode="json")},
            "model": {"name": self.model_name, **self.model.model_dump(mode="json")},
            "decoding": {"name": self.decoding_name, **self.decoding.model_dump(mode="json")},
            "scale": {"name": self.options.scale, **self.scale.model_dump(mode="json")},
            "options": options,
        }


def effective(
    settings: Settings, task: str, model: str | None = None, decoding: str | None = None
) -> Effective:
    """Return everything that applies to one task.

    Args:
        settings: the configuration.
        task: name of a task.
        model: name of a model; None takes the task's headline model.
        decoding: name of a decoding; None takes the task's headline decoding.

    Raises:
        UserError: a name is not known; the nearest known one is named.
    """
    chosen = settings.task(task)
    model, decoding = model or chosen.headline.model, decoding or chosen.headline.decoding
    return Effective(
        task=chosen,
        model_name=model,
        model=settings.model(model),
        decoding_name=decoding,
        decoding=settings.decoding(decoding),
        scale=settings.scale,
        options=settings.options,
    )


def _named(known: Mapping[str, T], what: str, name: str) -> T:
    if name not in known:
        raise UserError(unknown(what, name, known))
    return known[name]
