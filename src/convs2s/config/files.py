"""The files of the configuration: the class of each, and how many of it a file holds."""

from dataclasses import dataclass
from typing import Literal

from convs2s.config.claims import Claim
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.download import Download
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Table
from convs2s.config.phrases import Phrases
from convs2s.config.scale import Scale
from convs2s.config.section import Section
from convs2s.config.task import Task


@dataclass(frozen=True)
class ConfigurationFile:
    """A file of the configuration.

    Attributes:
        path: where it lies; NAME is any name.
        schema: the name of its JSON Schema.
        section: the class of what it holds.
        holds: one of it, names with one each, or a list.
    """

    path: str
    schema: str
    section: type[Section]
    holds: Literal["one", "names", "list"] = "one"


FILES = (
    ConfigurationFile("config.yaml", "config", Options),
    ConfigurationFile("config/tasks/NAME.yaml", "task", Task),
    ConfigurationFile("config/models.yaml", "models", ModelSettings, "names"),
    ConfigurationFile("config/decodings.yaml", "decodings", DecodingSettings, "names"),
    ConfigurationFile("config/scales/NAME.yaml", "scale", Scale),
    ConfigurationFile("config/downloads.yaml", "downloads", Download, "list"),
    ConfigurationFile("config/paper.yaml", "paper", Table, "names"),
    ConfigurationFile("config/claims.yaml", "claims", Claim, "names"),
    ConfigurationFile("config/phrases.yaml", "phrases", Phrases, "names"),
    ConfigurationFile("config/costs.yaml", "costs", Costs),
)
