"""config/phrases.yaml: phrases whose states show what an encoder knows of a sentence."""

from typing import Annotated

from pydantic import Field

from convs2s.config.fields import Text
from convs2s.config.section import Section

SomeTexts = Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
"""Phrases of one meaning."""


class Phrases(Section):
    """Phrases of two meanings or more, each meaning in several words: name -> the fields below."""

    title: str
    """What the phrases differ in; a figure's panel bears it."""
    source: str
    """Where they come from."""
    language: str
    """Code of their language, the source language of the models that read them."""
    meanings: Annotated[tuple[SomeTexts, ...], Field(strict=False, min_length=2)]
    """Phrases of one meaning in a list, as people write them; those of another in the next."""
