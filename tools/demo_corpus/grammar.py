"""The grammar of the demo: its categories and templates, as its data files say."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo_corpus.categories import Draw, read_categories
from demo_corpus.data_files import DATA, read_records
from demo_corpus.fillers import Filler, repeats_a_word
from demo_corpus.notation import SLOT, Sentence, Template, category_of


@dataclass(frozen=True)
class Grammar:
    """What sentences are drawn from."""

    categories: Mapping[str, Draw]
    templates: Sequence[Template]

    def draw(self, rng: random.Random) -> Sentence:
        """Draw a sentence with no word twice: a template, and a filler for each of its slots."""
        while True:
            template = rng.choice(self.templates)
            fillers = draw_fillers(rng, template, self.categories)
            if not repeats_a_word(fillers.values()):
                return Sentence(template, fillers)


def draw_fillers(
    rng: random.Random, template: Template, categories: Mapping[str, Draw]
) -> dict[str, Filler]:
    """Draw a filler for each slot of a template."""
    return {slot: categories[category_of(slot)](rng) for slot in template.slots}


def load_grammar(folder: Path = DATA) -> Grammar:
    """Read the grammar from its data files.

    Raises:
        UserError: a file is malformed; the message names it and the line.
    """
    categories = read_categories(folder)
    return Grammar(categories, read_templates(folder / "templates.yaml", categories))


def read_templates(file: Path, categories: Mapping[str, Draw]) -> list[Template]:
    """Read the templates and check their slots.

    Raises:
        UserError: a pattern is malformed; the message names the file and the line.
    """
    templates = []
    for row in read_records(file, ("en", "fr")):
        template = Template(row["en"], row["fr"])
        for fault in faults(template, categories):
            raise row.fault(fault)
        templates.append(template)
    return templates


def faults(template: Template, categories: Mapping[str, Draw]) -> Iterator[str]:
    """Yield what is wrong with a template."""
    if set(template.slots) != {match[1] for match in SLOT.finditer(template.french)}:
        yield "both patterns must have the same slots"
    for slot in sorted(template.slots):
        if category_of(slot) not in categories:
            yield f"there is no category {category_of(slot)!r}"
    for pattern in (template.english, template.french):
        if set("{}") & set(SLOT.sub("", pattern)):
            yield f"a slot is malformed or a brace is left over: {pattern}"
        for match in SLOT.finditer(pattern):
            if match[3] and match[3] not in template.slots:
                yield f"{match[0]} refers to {match[3]!r}, which is no slot of the template"
            if match[4] is not None and match[4].count("|") not in (1, 3):
                yield f"{match[0]} has neither two texts nor four"
