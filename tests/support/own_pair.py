"""A user's own language pair, made as docs/own_language_pair.md says, with a model of no size."""

import random
import re
from pathlib import Path
from typing import Any

import yaml

from tests.support.checkout import Checkout

PAGE = "docs/own_language_pair.md"

TASK = """
description: A user's own language pair
languages: {source: en, target: fr}
corpus:
  train: [{source: train.en, target: train.fr}]
  valid: [{source: valid.en, target: valid.fr}]
  tests: {mine: [{source: test.en, target: test.fr}]}
"""

# One layer each way, and two epochs of a cosine whatever the recipe of the model: seconds instead
# of hours.
TINY: dict[str, Any] = yaml.safe_load("""
architecture:
  embedding: 16
  output_embedding: 16
  encoder: [{layers: 1, width: 16, kernel: 3}]
  decoder: [{layers: 1, width: 16, kernel: 3}]
training:
  batch: {sentences: 32, tokens: null}
  schedule: {kind: cosine}
  best_by: null
  maximum_epochs: 2
""")

_NOUNS = "cat/kat dog/hond tree/boom book/boek bird/vogel fish/vis king/koning"
_ADJECTIVES = "red/rode old/oude small/kleine big/grote young/jonge"
_VERBS = "sees/ziet has/heeft finds/vindt hears/hoort"


def write_pair(root: Path, checkout: Checkout) -> None:
    """Write the six files of the page's first section, and the tasks that it shows."""
    generator = random.Random(1)
    for split, count in (("train", 300), ("valid", 20), ("test", 20)):
        english = dutch = ""
        for _ in range(count):
            kinds = (_ADJECTIVES, _NOUNS, _VERBS, _ADJECTIVES, _NOUNS)
            words = [generator.choice(kind.split()).split("/") for kind in kinds]
            english += "The {} {} {} the {} {}.\n".format(*(word for word, _ in words))
            dutch += "De {} {} {} de {} {}.\n".format(*(word for _, word in words))
        checkout.write(f"data/mine/{split}.en", english)
        checkout.write(f"data/mine/{split}.nl", dutch)
    for block in _blocks(root, "yaml"):
        name = block.splitlines()[0].removeprefix("# ")
        if name.startswith("config/tasks/"):
            checkout.write(name, block)


def commands(root: Path) -> list[str]:
    """The command lines on the page, in its order."""
    return "".join(_blocks(root, "sh")).splitlines()


def _blocks(root: Path, kind: str) -> list[str]:
    page = (root / PAGE).read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
