"""The scores of a run that a column of config/paper.yaml can show, and the files they are in."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from pydantic.json_schema import JsonSchemaValue

from convs2s.config.section import ExtensionName


@dataclass(frozen=True)
class ScoreFile:
    """A kind of JSON file with numbers of a run.

    ``pattern`` is its path below models/{model}/{run}/, as a format string. ``jobs`` are the jobs
    that make the file from the run's models, as format strings of the names of their logs.
    """

    pattern: str
    jobs: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """The file's name without the parts in braces, such as ``bleu.json``."""
        return re.sub(r"\{\w+\}\.", "", self.pattern)

    @property
    def named_by(self) -> list[str]:
        """The keys of a table's row that are part of the path, such as testset and decoding."""
        return re.findall(r"\{(\w+)\}", self.pattern)


@dataclass(frozen=True)
class Measure:
    """A score and where it is found.

    ``place`` is the path of keys in the JSON file, joined by dots. ``label`` is the name of the
    score in footnotes.
    """

    label: str
    file: ScoreFile
    place: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of ``place``, the outermost first."""
        return tuple(self.place.split("."))


_DECODE = "{testset}.{decoding}.decode"
_BLEU = ScoreFile(
    "{testset}.{decoding}.bleu.json", (_DECODE, "{testset}.{decoding}.bleu")
)
_ROUGE = ScoreFile(
    "{testset}.{decoding}.rouge.json", (_DECODE, "{testset}.{decoding}.rouge")
)
RESCORED = ScoreFile(
    "{testset}.rescored.bleu.json", ("{testset}.scored", "{testset}.rescored")
)
_PHRASES = ScoreFile("phrases.{phrases}.json", ("phrases.{phrases}",))
_EXAMPLE = ScoreFile(
    "{testset}.{decoding}.example.json", ("{testset}.{decoding}.example",)
)
_CPU = ScoreFile(
    "{testset}.{decoding}.cpu.speed.json", ("{testset}.{decoding}.cpu.speed",)
)
_CUDA = ScoreFile(
    "{testset}.{decoding}.cuda.speed.json", ("{testset}.{decoding}.cuda.speed",)
)
_PERPLEXITY = ScoreFile("{testset}.perplexity.json", ("{testset}.perplexity",))
_TRAINING = ScoreFile("training.json")
_SPEED = ScoreFile("training.speed.json", ("training.speed",))


class _Measures(dict[str, Measure]):
    """Measures by name. A name that is not built in is the name of an extension's metric."""

    def __missing__(self, name: str) -> Measure:
        return Measure(name, _BLEU, f"further.{name}")


_BUILT_IN = {
    "bleu_tokenized": Measure("tokenized BLEU", _BLEU, "bleu.tokenized"),
    "bleu_detokenized": Measure("detokenized BLEU", _BLEU, "bleu.detokenized"),
    "bleu_tokenized_before_replacement": Measure(
        "tokenized BLEU before unknown word replacement",
        _BLEU,
        "before_replacement.bleu.tokenized",
    ),
    "chrf": Measure("chrF", _BLEU, "chrf"),
    "length_ratio": Measure("words divided by the references'", _BLEU, "length_ratio"),
    "bleu_rescored": Measure("tokenized BLEU", RESCORED, "bleu.average.tokenized"),
    "bleu_of_list": Measure("tokenized BLEU", RESCORED, "bleu.first.tokenized"),
    "bleu_oracle": Measure("tokenized BLEU", RESCORED, "bleu.oracle.tokenized"),
    "phrases_apart": Measure(
        "share of the variance of the encoder's final states that lies between the meanings",
        _PHRASES,
        "apart",
    ),
    "phrases_chance": Measure(
        "that share by chance, by swaps of meanings", _PHRASES, "chance"
    ),
    "phrases_p": Measure("p of that share, by swaps of the meanings", _PHRASES, "p"),
    "attention_layers": Measure(
        "attention of every decoder layer while it translates", _EXAMPLE, "layers"
    ),
    "perplexity": Measure(
        "perplexity of the validation data", _TRAINING, "validation_perplexity"
    ),
    "types_per_batch": Measure(
        "target types among which a batch of validation data chooses, on average",
        _TRAINING,
        "shortlist.types",
    ),
    "test_perplexity": Measure("perplexity of the test set", _PERPLEXITY, "perplexity"),
    "training_speed": Measure(
        "target tokens per second", _SPEED, "target_tokens_per_second"
    ),
    "training_hours": Measure(
        "hours of the updates at the median rate", _SPEED, "device_hours"
    ),
    "seconds_cpu": Measure("generation time", _CPU, "seconds"),
    "seconds_cuda": Measure("generation time", _CUDA, "seconds"),
}
for _part in ("f1", "recall"):
    for _name, _key in (
        ("ROUGE-1", "rouge_1"),
        ("ROUGE-2", "rouge_2"),
        ("ROUGE-L", "rouge_l"),
    ):
        _BUILT_IN[f"{_key}_{_part}"] = Measure(
            f"{_name} {_part}", _ROUGE, f"rouge.{_key}.{_part}"
        )

MEASURES = _Measures(_BUILT_IN)
"""Name in config/paper.yaml and in a ledger -> the measure.

Iteration and ``in`` cover only the built-in measures. A look-up of any other name returns the
measure of the extension's metric with this name.
"""


def _list_measures(schema: JsonSchemaValue) -> None:
    """Make a name's JSON Schema list the built-in names, for editors and docs/configuration.md.

    The schema is changed in place. It still allows the name of an extension's metric.
    """
    any_name = dict(schema)
    schema.clear()
    schema["anyOf"] = [{"enum": [*MEASURES], "type": "string"}, any_name]


MeasureName = Annotated[ExtensionName, Field(json_schema_extra=_list_measures)]
"""A name of `MEASURES` or of an extension's metric; `check_references` looks it up."""
