"""Model cards: Markdown that describes where a model file comes from, and its scores.

The facts about the training are in the model file itself, so that a copy of that file alone still
has them. The scores are computed later and would change the bytes of the file. They are read from
the JSON files beside it.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import ChainableUndefined

from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json
from convs2s.files.whole import check_whole
from convs2s.layout import TaskFolder, task_of
from convs2s.model_file import describe_model
from convs2s.scoring.data_counts import DataCounts, read_data_counts
from convs2s.scoring.evaluation import BleuEvaluation, Evaluation, RougeEvaluation
from convs2s.scoring.reports.layout import text_templates
from convs2s.scoring.summary import read_evaluation
from convs2s.training.identity import digest_of

_CODE = "    "  # a line of Markdown that begins with this is code and has no markup
NOT_RECORDED = "not recorded here"

EVALUATIONS: Mapping[str, type[Evaluation]] = {
    ".bleu.json": BleuEvaluation,
    ".rouge.json": RougeEvaluation,
}
"""Suffix of a file of scores -> the class of its content."""


def model_card(model: Path, name: str = "") -> str:
    """Return the card of a model file as Markdown, rendered from ``data/card.md.j2``.

    Args:
        model: the model file. Its scores and the record of its training are read from files in the
            same folder, if there are any.
        name: the name of the file in the card, if it is not that of ``model``.

    Raises:
        UserError: the model file, or a file beside it that the card would repeat, is damaged or
            was changed after it was written.
    """
    check_whole(model)
    description = describe_model(model)
    training = description.training
    identity: Any = training.get("identity") or {}
    scores = list(scored(model))
    counts = _counts_of(model, identity)
    made = _made_with(model, identity)
    # A record may lack any fact. A value that is undefined, or is part of an undefined one, becomes
    # NOT_RECORDED by _printed.
    templates = text_templates("convs2s.publish").overlay(
        undefined=ChainableUndefined, finalize=_printed
    )
    templates.filters |= {"number": _number, "indented": _indented}
    with failures_of_file(model, "its record of a training is not as expected"):
        identity = dict(identity)  # fails if it is no mapping
        card = templates.get_template("card.md.j2").render(
            name=name or model.name,
            size=model.stat().st_size,
            sha256=sha256(model),
            description=description,
            architecture=description.architecture.model_dump(
                mode="json", exclude_none=True
            ),
            training=training,
            identity=identity,
            fingerprint=digest_of(identity) if identity else None,
            scores=scores,
            counts=counts,
            made=made,
        )
    # No text of the model file may become HTML, a link or an image of the page.
    lines = []
    for line in card.splitlines(keepends=True):
        if line.startswith(_CODE):
            lines.append(line)
        else:
            lines.append(line.replace("<", "&lt;").replace("](", "]\\("))
    return "".join(lines)


class _Lines(str):
    """Lines that `_printed` does not change, because they are ready to print."""

    __slots__ = ()


def _printed(value: object) -> str:
    """Return a value as text within one line, without control characters.

    The model file may come from a stranger, so its texts must not control a terminal or a page.
    """
    if isinstance(value, _Lines):
        return value
    if value is None or isinstance(value, ChainableUndefined):
        return NOT_RECORDED
    text = str(value)
    printable = "".join(
        letter for letter in text if unicodedata.category(letter)[0] != "C"
    )
    # Unicode's separators of lines and paragraphs are not in category C. splitlines splits at them.
    return " ".join(printable.splitlines())


def _number(value: object) -> str:
    """Format an integer with commas."""
    return f"{value:,}" if isinstance(value, int) else NOT_RECORDED


def _indented(content: object) -> _Lines:
    """Return nested settings in YAML, as in the configuration, as a block of Markdown code."""
    text = yaml.safe_dump(content, sort_keys=False) if content else NOT_RECORDED
    return _Lines("\n".join(_CODE + _printed(line) for line in text.splitlines()))


def scored(model: Path) -> Iterator[tuple[str, Evaluation]]:
    """Yield the scores of a model file as pairs of the decoding's name and the evaluation.

    They are read from the files TESTSET.DECODING.bleu.json and .rouge.json in the same folder, if
    these record the SHA-256 of the model file. Scores of rescored n-best lists are left out,
    because the lists are not translations of the model.

    Raises:
        UserError: a file of scores was changed after it was written, or has another form.
    """
    digest = sha256(model)
    for suffix, evaluation_class in EVALUATIONS.items():
        for path in sorted(model.parent.glob(f"*{suffix}")):
            if ".rescored" in path.name:
                continue
            # Without this check, a damaged file might not match the digest, and its scores would be
            # left out without a message.
            check_whole(path)
            # Search the bytes first: files of other models or programs need not be parsed.
            if digest.encode() not in path.read_bytes():
                continue
            evaluation = read_evaluation(evaluation_class, path)
            checksums: Any = evaluation.manifest.get("sha256", {})
            if digest in checksums.values():
                stem = path.name.removesuffix(suffix)
                yield stem.removeprefix(f"{evaluation.test_set}."), evaluation


def _counts_of(model: Path, identity: object) -> DataCounts | None:
    """Return the counts of the data of a model, from the folder of its task.

    Return None if the file is not in such a folder, or if the counts are of other data.
    """
    path = Path(TaskFolder(str(task_of(model))).dataset_counts)
    check_whole(path)
    counts = read_data_counts(path) if path.is_file() else None
    match identity:
        # The counts are of the same data if the model was trained on the counted stores.
        case {"data": dict(data)} if counts and counts.stores.items() <= data.items():
            return counts
    return None


def _made_with(model: Path, identity: object) -> Mapping[str, object]:
    """Return the versions and the machine that made a model, from ``training.json`` beside it.

    Return an empty mapping if there is no such file, or if it is the record of another training.
    """
    path = model.with_name("training.json")
    check_whole(path)
    record = read_json(path) if path.is_file() else None
    match record:
        case {"manifest": dict(made)} if (made.get("identity") or {}) == identity:
            return made
    return {}
