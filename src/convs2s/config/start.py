"""``start`` of a training recipe: the model that a training begins with."""

from typing import Literal

from pydantic import ConfigDict, Field

from convs2s.config.fields import Text
from convs2s.config.section import Section


class Start(Section):
    """A trained model that a training begins with."""

    model_config = ConfigDict(serialize_by_alias=True)  # both keys are words of Python

    model: Text = Field(alias="from")
    """The model file: a path, or an http(s) URL, whose checksum config/downloads.yaml may state.
    Its vocabularies, BPE codes and network must be those of the training (vocabulary_of of a task
    takes them)."""
    mode: Literal["continue", "initialise"] = Field(alias="as")
    """initialise takes its weights and nothing else, as for fine-tuning on other data; continue
    goes on after its best epoch with the data that it was trained on, by the same recipe but for
    learning_rate, schedule and maximum_epochs. The optimizer starts anew in either case."""
