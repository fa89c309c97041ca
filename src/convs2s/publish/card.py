"""A model's card: where a model file comes from and what it scored, as Markdown.

What training knows is in the model file itself, so that a file that was copied alone still says it.
Scores come later and would change the file's bytes: they stand in the JSON files beside it.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import ChainableUndefined, Environment, PackageLoader

from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json
from convs2s.model_file import describe_model
from convs2s.scoring.evaluation import BleuEvaluation, Evaluation, RougeEvaluation
from convs2s.scoring.summary import read_evaluation
from convs2s.training.identity import digest_of

_CODE = "    "  # begins a line of Markdown in which nothing is markup
NOT_RECORDED = "not recorded here"

EVALUATIONS: Mapping[str, type[Evaluation]] = {
    ".bleu.json": BleuEvaluation,
    ".rouge.json": RougeEvaluation,
}
"""How the names of files of scores end, and what they hold."""


def model_card(model: Path, name: str = "") -> str:
    """Return a model file's card as Markdown: ``data/card.md.j2``, filled in.

    Args:
        model: the file; scores and records of its training lie beside it.
        name: what the card calls the file, if not by its own name.

    Raises:
        UserError: the file, or a record beside it, is damaged.
    """
    description = describe_model(model)
    training = description.training
    identity: Any = training.get("identity") or {}
    scores = list(scored(model))
    made = _made_with(model, identity)
    environment = Environment(
        loader=PackageLoader("convs2s.publish", "data"),
        undefined=ChainableUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": _number, "indented": _indented}
    with failures_of_file(str(model), "its record of a training is none of ours"):
        identity = dict(identity)
        card = environment.get_template("card.md.j2").render(
            name=name or model.name,
            size=model.stat().st_size,
            sha256=sha256(model),
            description=description,
            languages=f"{description.languages['source']} to {description.languages['target']}",
            architecture=description.architecture.model_dump(mode="json", exclude_none=True),
            training=training,
            identity=identity,
            fingerprint=digest_of(identity) if identity else None,
            scores=scores,
            made=made,
        )
    lines = []
    for line in card.splitlines(keepends=True):
        is_code = line.startswith(_CODE)
        lines.append(line if is_code else line.replace("<", "&lt;").replace("](", "]\\("))
    return "".join(lines)


class _Lines(str):
    """Lines that the card takes as they stand."""

    __slots__ = ()


def _printed(value: object) -> str:
    """Return a value as a part of a line, without what a terminal or a page would act on.

    The model file may be a stranger's.
    """
    if isinstance(value, _Lines):
        return value
    if value is None or isinstance(value, ChainableUndefined):
        return NOT_RECORDED
    shown = "".join(sign for sign in str(value) if unicodedata.category(sign)[0] != "C")
    return " ".join(shown.splitlines())  # at Unicode's own ends of lines and paragraphs


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else NOT_RECORDED


def _indented(content: object) -> _Lines:
    """Return nested settings as they would stand in the configuration, as code."""
    text = yaml.safe_dump(content, sort_keys=False) if content else NOT_RECORDED
    return _Lines("\n".join(_CODE + _printed(line) for line in text.splitlines()))


def scored(model: Path) -> Iterator[tuple[str, Evaluation]]:
    """Yield what this very file scored, by the JSON files TESTSET.DECODING beside it: its decoding.

    Scores of a rescored list are of no model.
    """
    digest = sha256(model)
    for suffix, evaluation_class in EVALUATIONS.items():
        for path in sorted(model.parent.glob(f"*{suffix}")):
            if ".rescored" in path.name or digest.encode() not in path.read_bytes():
                continue  # a list's, another model's, or another program's
            evaluation = read_evaluation(evaluation_class, path)
            checksums: Any = evaluation.manifest.get("sha256", {})
            if digest in checksums.values():
                stem = path.name.removesuffix(suffix)
                yield stem.removeprefix(f"{evaluation.test_set}."), evaluation


def _made_with(model: Path, identity: object) -> Mapping[str, object]:
    """Return what made the model, where the records of this very training lie beside it."""
    records = model.with_name("training.json")
    match read_json(records) if records.is_file() else None:
        case {"manifest": dict(made)} if (made.get("identity") or {}) == identity:
            return made
    return {}
