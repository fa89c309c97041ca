"""A model's card: where a model file comes from and what it scored, as Markdown.

What training knows is in the model file itself, so that a file that was copied alone still says it.
Scores come later and would change the file's bytes: they stand in the JSON files beside it.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

import yaml

from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json
from convs2s.model_file import ModelDescription, describe_model
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

Facts = Mapping[str, object]


def model_card(model: Path, name: str = "") -> str:
    """Return a model file's card as Markdown.

    Args:
        model: the file; scores and records of its training lie beside it.
        name: what the card calls the file, if not by its own name.

    Raises:
        UserError: the file, or a record beside it, is damaged.
    """
    description = describe_model(model)
    with failures_of_file(str(model), "its record of a training is none of ours"):
        lines = list(_heading(model, name, description))
        lines += _training(description.training)
        lines += _data(description.training)
    lines += _scores(model)
    lines += _versions(model, description)
    return "".join(f"{_inert(line)}\n" for line in lines)


def _inert(line: str) -> str:
    """Return a line without what a terminal or a page would act on: a stranger's model file."""
    shown = "".join(sign for sign in line if unicodedata.category(sign)[0] != "C")
    shown = " ".join(shown.splitlines())  # at Unicode's own ends of lines and paragraphs
    return shown if shown.startswith(_CODE) else shown.replace("<", "&lt;").replace("](", "]\\(")


def _heading(model: Path, name: str, description: ModelDescription) -> Iterator[str]:
    languages = f"{description.languages['source']} to {description.languages['target']}"
    training = description.training
    yield f"# {description.task}: {languages}"
    yield ""
    if training.get("stand_in"):
        yield f"STAND-IN DATA: {training['stand_in']}"
        yield ""
    units = "whole words" if description.bpe_codes is None else "BPE"
    sizes = f"{len(description.source_types):,} source and {len(description.target_types):,} target"
    facts = {
        "file": f"{name or model.name}, {model.stat().st_size:,} bytes",
        "SHA-256": sha256(model),
        "task": description.task,
        "languages": languages,
        "parameters": _number(training.get("parameters")),
        "preparation": f"{description.preparation}, then {units}",
        "truecased": "yes" if description.truecasers else "no",
        "vocabulary": f"{sizes} types",
        "dictionary for unknown words": f"{len(description.dictionary):,} source words",
    }
    yield from _listed(facts)
    yield from _section("Architecture")
    yield from _block(description.architecture.model_dump(mode="json", exclude_none=True))


def _training(training: Facts) -> Iterator[str]:
    yield from _section("Training")
    if "imported_from" in training:
        yield f"- imported from: {training['imported_from']}"
        yield f"- SHA-256 of the checkpoint: {training.get('checkpoint_sha256', NOT_RECORDED)}"
        return
    identity = _mapping(training, "identity")
    perplexity = training.get("validation_perplexity")
    known = f"{perplexity:.4f}" if isinstance(perplexity, float) else NOT_RECORDED
    use = _mapping(training, "source_use")
    others = f"{use['permuted_perplexity']:.4f}, {use['ratio']:.2f} times" if use else NOT_RECORDED
    facts = {
        "seed": training.get("seed", NOT_RECORDED),
        "updates": _number(training.get("updates")),
        "epochs": _number(training.get("epochs")),
        "best epoch": _number(training.get("best_epoch")),
        "validation perplexity": known,
        "the same with permuted sources": others,
        "ended": training.get("stop_reason", NOT_RECORDED),
        "version of training": identity.get("version", NOT_RECORDED),
        "fingerprint": digest_of(identity) if identity else NOT_RECORDED,
    }
    start = _mapping(identity, "start")
    if start:
        facts["started from"] = f"the model `{start['sha256']}`, {start['as']}"
    yield from _listed(facts)
    yield from _section("Recipe")
    yield from _block(identity.get("training"))


def _data(training: Facts) -> Iterator[str]:
    yield from _section("Data")
    if "imported_from" in training:
        yield f"The text that it was trained on: {NOT_RECORDED}."
        return
    yield from _listed({"training pairs": _number(training.get("pairs"))})
    yield from _section("Files that the text came from")
    sources = cast(list[Mapping[str, str | None]], training.get("sources") or [])
    for source in sources:
        known = [f"{name} `{source[name]}`" for name in ("sha256", "md5") if source.get(name)]
        checksum = ", ".join(known) or "no checksum known beforehand"
        yield f"- {source['file']}: {checksum}; license: {source.get('licence') or 'not known'}"
    if not sources:
        yield f"- {NOT_RECORDED}"
    yield from _section("Checksums (SHA-256) of what training read")
    checksums = _mapping(_mapping(training, "identity"), "data")
    yield from _listed({name: f"`{digest}`" for name, digest in checksums.items()})
    if not checksums:
        yield f"- {NOT_RECORDED}"


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
            if digest in _mapping(evaluation.manifest, "sha256").values():
                stem = path.name.removesuffix(suffix)
                yield stem.removeprefix(f"{evaluation.test_set}."), evaluation


def _scores(model: Path) -> Iterator[str]:
    yield from _section("Scores")
    rows: list[str] = []
    for decoding, evaluation in scored(model):
        for metric, score in evaluation.scores().items():
            about = f"{evaluation.test_set} | {evaluation.lines:,} | {decoding} | {metric}"
            signature = score.signature.replace("|", "\\|")
            rows.append(f"| {about} | {score.score:.2f} | `{signature}` |")
    if not rows:
        yield f"{NOT_RECORDED}: no scores of this very file lie beside it."
        return
    yield "| test set | lines | decoding | metric | score | signature |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from rows


def _versions(model: Path, description: ModelDescription) -> Iterator[str]:
    """Yield what made the model, where the records of this very training lie beside it."""
    yield from _section("Made with")
    records = model.with_name("training.json")
    stated = read_json(records) if records.is_file() else None
    made = stated.get("manifest") if isinstance(stated, dict) else None
    if not isinstance(made, dict) or made.get("identity") != description.training.get("identity"):
        yield f"{NOT_RECORDED}: no records of this very training lie beside it."
        return
    for name in ("convs2s", "revision", "python"):
        yield f"- {name}: {made.get(name) or NOT_RECORDED}"
    for name, version in dict(made.get("packages", {})).items():
        yield f"- {name}: {version or '-'}"
    for name in ("processor", "threads", "system"):
        yield f"- {name}: {made.get(name) or NOT_RECORDED}"


def _mapping(facts: Facts, key: str) -> Facts:
    return cast(Facts, facts.get(key) or {})


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else NOT_RECORDED


def _section(title: str) -> Iterable[str]:
    return "", f"## {title}", ""


def _listed(facts: Facts) -> Iterable[str]:
    return (f"- {name}: {value}" for name, value in facts.items())


def _block(content: object) -> Iterator[str]:
    """Yield nested settings as they would stand in the configuration."""
    text = yaml.safe_dump(content, sort_keys=False) if content else NOT_RECORDED
    yield from (f"{_CODE}{line}" for line in text.splitlines())
