"""Write and read model files. They contain all that is needed to translate raw text.

Beside the weights, these are the vocabularies, the BPE codes, the dictionary and so on.
"""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, InstanceOf

from convs2s.config.architecture import Architecture
from convs2s.config.corpus import PREPARATIONS, PreparationName
from convs2s.config.extensions import check_added
from convs2s.config.messages import validated
from convs2s.config.runs import SEED_PATTERN
from convs2s.config.section import Section
from convs2s.data.shortlist import Shortlist
from convs2s.data.vocabulary import Vocabulary
from convs2s.errors import UserError, failures_of_file
from convs2s.files.checksums import check_noted
from convs2s.files.tensors import (
    WITHOUT_DIGEST,
    Fields,
    load_arrays,
    load_description,
    load_tensors,
    save_tensors,
)
from convs2s.text.bpe import check_codes

if TYPE_CHECKING:
    from torch import Tensor

    from convs2s.models.network import Network

FORMAT = "convs2s model 3"

STATE = "state"
"""Name of the folder of a training's states, beside its model file."""

EMBEDDING_TABLES = {
    "source": "encoder.embedding.tokens",
    "target": "decoder.embedding.tokens",
}
"""Side -> name of the embedding table, which has a row for each type of that side's vocabulary."""

# Names of the two arrays of a shortlist, which are stored as tensors beside the weights.
CANDIDATE_OFFSETS = "candidates.offsets"
CANDIDATE_TARGETS = "candidates.targets"


class _Languages(Section):
    """The language codes of a model. Any text is valid, as an imported model keeps its codes."""

    source: str
    target: str


_Scale = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class ModelDescription(Section):
    """The content of a model file beside its weights.

    It does not contain times, host names or the number of resumptions, so that the same training
    gives the same bytes.
    """

    task: str  # the task that the model was trained for
    languages: dict[str, str]  # {"source": "en", "target": "fr"}
    # The recipe from raw text to tokens (``convs2s.text.preparation``).
    preparation: PreparationName
    architecture: Architecture
    # The types of the vocabularies without special tokens, in the order of their indices.
    source_types: list[str]
    target_types: list[str]
    bpe_codes: str | None  # None for a word model
    # The origin of the weights. For a training: its summary (seed, epochs, updates, validation
    # perplexity), its identity (recipe, checksums of its data, version of training) and the sources
    # of its text. For an imported model: the toolkit and the checksum of its checkpoint.
    training: dict[str, object]
    # Regular expressions of words, or parts of words, that BPE keeps whole.
    glossaries: list[str] = []
    # The source tokens that BPE does not split further (vocabulary threshold); None means all.
    splittable: list[str] | None = None
    # Source word -> target word, for the replacement of unknown words.
    dictionary: dict[str, str] = {}
    # The target types that are scored for a sentence; None means all types.
    shortlist: InstanceOf[Shortlist] | None = None
    # The fixed scale of each place in the network at which linear maps read int8
    # (``convs2s.models.int8_scales``). Empty if each row of their inputs gets a scale of its own.
    int8_scales: dict[str, _Scale] = {}
    # Language -> the words of its truecaser (``convs2s.text.truecase``). Empty if the model does
    # not truecase.
    truecasers: dict[str, list[str]] = {}

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Return the source vocabulary and the target vocabulary."""
        return Vocabulary(self.source_types), Vocabulary(self.target_types)

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of the source and the target vocabulary, with special tokens."""
        source, target = self.vocabularies()
        return len(source), len(target)


def save_model(
    path: Path,
    weights: Mapping[str, "Tensor"],
    description: ModelDescription,
) -> None:
    """Write a model file."""
    import torch

    fields = dict(vars(description))
    fields["format"] = FORMAT
    fields["architecture"] = description.architecture.model_dump(mode="json")
    del fields["shortlist"]  # stored as tensors below
    tensors = dict(weights)
    if description.shortlist is not None:
        tensors[CANDIDATE_OFFSETS] = torch.from_numpy(description.shortlist.offsets)
        tensors[CANDIDATE_TARGETS] = torch.from_numpy(description.shortlist.candidates)
    save_tensors(path, tensors, fields)


def calibrated(
    description: ModelDescription,
    weights: Mapping[str, "Tensor"],
) -> ModelDescription:
    """Return the description with the int8 scales added that fit these weights of its network.

    The description of a network that cannot run in ONNX Runtime is returned unchanged.
    """
    from convs2s.models.int8_scales import calibrate

    if not description.architecture.runs_onnx:
        return description
    arrays = {name: weight.cpu().float().numpy() for name, weight in weights.items()}
    scales = calibrate(arrays, description.architecture, description.sizes)
    return description.model_copy(update={"int8_scales": scales})


def kept_file(path: Path) -> Path:
    """Return the second name, in ``state/``, of a finished model or of one of its records.

    The file keeps this name until the next training in the folder has ended.
    """
    return path.parent / STATE / f"finished.{path.name}"


def _check_is_there(path: Path) -> None:
    """Check that a model file is not missing because its training runs again.

    Any other failure to read the file is left to the code that opens it.

    Raises:
        UserError: there is no such file, but the model of the last training is still there under
            its second name (`kept_file`). The message names that file.
    """
    kept = kept_file(path)
    with suppress(OSError):  # the folder cannot be read
        if path.exists() or not kept.is_file():
            return
        raise UserError(
            f"{path}: no such file: it is being trained again, or that training was stopped; until "
            f"it has ended, the finished model of before is {kept}"
        )


def load_weights(path: Path) -> tuple[dict[str, NDArray[Any]], ModelDescription]:
    """Read a model file without torch.

    The same checks are made as in ``load_model``, except that the weights are not compared with the
    network.

    Raises:
        UserError: the file is missing, is not a model file, or its vocabularies do not match its
            weights.
    """
    _check_is_there(path)
    weights, fields = load_arrays(path)
    return weights, _whole_description(path, weights, fields)


def load_model(path: Path, device: str = "cpu") -> tuple["Network", ModelDescription]:
    """Read a model file; return its network, in evaluation mode on ``device``, and its description.

    Raises:
        UserError: the file is missing, is not a model file, or its weights do not match its
            vocabularies or its architecture.
    """
    from torch import nn

    from convs2s.models.build import build_network, shapes_alone

    _check_is_there(path)
    weights, fields = load_tensors(path)
    description = _whole_description(path, weights, fields)
    # A damaged description may state huge sizes. So first build the network without allocating its
    # weights, and compare its shapes with those of the weights in the file.
    with shapes_alone():
        model = build_network(description.architecture, *description.sizes)
    check_weights(weights, model, str(path))
    copies = {}
    for name, tensor in model.state_dict().items():
        # safetensors maps the file into memory, and another process may overwrite the file.
        copies[name] = weights[name].to(device, tensor.dtype, copy=True)
    model.load_state_dict(copies, assign=True)
    for layer in model.modules():
        if isinstance(layer, nn.RNNBase):
            # cuDNN needs the weights in one block of memory. Otherwise it copies them at each step.
            layer.flatten_parameters()
    return model.eval(), description


def _whole_description(
    path: Path,
    weights: Fields,
    fields: Fields,
) -> ModelDescription:
    """Return the description of a model, with its shortlist; check that the vocabularies fit.

    ``weights`` are tensors or arrays. Those of the shortlist are removed from ``weights``, so that
    only the weights of the network remain.

    Raises:
        UserError: the description is not valid, the shortlist is damaged, or the vocabularies do
            not match the embedding tables.
    """
    description = _description(path, fields)
    selection = description.architecture.selection
    if selection is not None:
        shortlist = _shortlist(path, weights, description.sizes, selection.frequent)
        description = description.model_copy(update={"shortlist": shortlist})
    rows = []
    for name in EMBEDDING_TABLES.values():
        # A table that is missing, or is a single number, counts as 0 rows.
        table = weights.get(name, np.empty(0))
        rows.append(len(table) if table.ndim else 0)
    types = list(description.sizes)
    if types != rows:
        raise UserError(
            f"{path}: its vocabularies ({types[0]} and {types[1]} types) do not match its weights "
            f"({rows[0]} and {rows[1]} rows)"
        )
    return description


def _shortlist(
    path: Path,
    weights: Fields,
    sizes: tuple[int, int],
    frequent: int,
) -> Shortlist:
    """Remove the arrays of the shortlist from the weights (tensors or arrays), and check them.

    The candidates of source type N are
    ``candidates.targets[candidates.offsets[N] : candidates.offsets[N + 1]]``.

    Args:
        path: the model file, for messages.
        weights: all tensors or arrays of the file.
        sizes: the sizes of the source and the target vocabulary.
        frequent: number of target types that are scored for every sentence.

    Raises:
        UserError: the arrays are missing or damaged.
    """
    source, target = sizes
    damaged = "its table of candidates is damaged"
    with failures_of_file(path, damaged):
        offsets = np.asarray(weights.pop(CANDIDATE_OFFSETS))
        candidates = np.asarray(weights.pop(CANDIDATE_TARGETS))
        are_lists = offsets.ndim == 1 and candidates.ndim == 1
        are_whole_numbers = offsets.dtype == np.int64 and candidates.dtype == np.int32
        if not (are_lists and are_whole_numbers):
            raise UserError(f"{path}: {damaged}: expected two lists of whole numbers")
        has_each_type = len(offsets) == source + 1
        covers_all = offsets[0] == 0 and offsets[-1] == len(candidates)
        # Without initial=0, min and max would fail for an empty array, which is valid.
        is_in_order = np.diff(offsets).min(initial=0) >= 0
        if not (has_each_type and covers_all and is_in_order):
            raise UserError(
                f"{path}: {damaged}: its offsets are not those of {source} types"
            )
        if candidates.min(initial=0) < 0 or candidates.max(initial=0) >= target:
            raise UserError(
                f"{path}: {damaged}: it contains an index outside of the vocabulary"
            )
    return Shortlist(target, frequent, offsets, candidates)


def check_weights(
    weights: Mapping[str, "Tensor"],
    network: "Network",
    name: str,
) -> None:
    """Check that weights are finite, and have the names and shapes of a network's parameters.

    Only the names and shapes of ``network`` are read, so it may be without values (`shapes_alone`).

    Raises:
        UserError: a weight is missing or unexpected, has another shape, or is not finite. The
            message begins with ``name``, the file of the weights.
    """
    import torch

    expected = network.state_dict()
    only_in_one = sorted(weights.keys() ^ expected.keys())
    for weight in only_in_one:
        verb = "lacks" if weight in expected else "has"
        raise UserError(
            f"{name}: not the network that it describes: it {verb} {weight!r}"
        )
    for weight, tensor in weights.items():
        if tensor.shape != expected[weight].shape or not tensor.is_floating_point():
            raise UserError(
                f"{name}: not the network that it describes: {weight!r} is {_shown(tensor)}, but "
                f"{_shown(expected[weight])} was expected"
            )
        if not torch.isfinite(tensor).all():
            raise UserError(
                f"{name}: {weight!r} contains NaN or infinity; train the model again"
            )


def _shown(tensor: "Tensor") -> str:
    """Return the type and the shape of a tensor for a message."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def describe_model(path: Path) -> ModelDescription:
    """Return the description in a model file, without reading the tensors.

    The shortlist consists of tensors, so the returned description has no shortlist.

    Raises:
        UserError: the file is missing, or is not a model file.
    """
    _check_is_there(path)
    return _description(path, load_description(path))


def check_runs(paths: Iterable[str | Path]) -> None:
    """Check that each model file belongs to the run in whose folder it is.

    The folder TASK/models/MODEL/SEED (`layout.TaskFolder.run`) must name the task and the seed of
    the model. If there is a ``training.json`` beside the model, it must record the same recipe and
    data. Files without the suffix ``.safetensors`` are ignored.

    Raises:
        UserError: a file belongs to another run, or ``training.json`` is damaged.
    """
    for given in paths:
        path = Path(given).absolute()
        if path.suffix != ".safetensors":
            continue
        model = describe_model(path)
        folder = path.parent
        task_folder = folder.parents[2]
        # None for a run without a seed, such as that of a released model.
        folder_seed = re.fullmatch(f"seed({SEED_PATTERN})", folder.name)
        model_seed = model.training.get("seed")
        record = path.with_name("training.json")
        problem = ""
        if model.task != task_folder.name:
            problem = f"is the model of task {model.task}"
        elif folder_seed and int(folder_seed[1]) != model_seed:
            problem = f"is the model of seed {model_seed}"
        elif record.is_file():
            check_noted([record])
            if recorded_identity(record) != model.training.get("identity"):
                problem = "belongs to another training than the one in training.json beside it"
        if problem:
            raise UserError(
                f"{path}: {problem}; a file of another run was put here, or its task was renamed. "
                "Put back the right file or name; a renamed task needs a new folder"
            )


def recorded_identity(record: Path) -> Mapping[str, object]:
    """Return the identity of a training from its record, ``training.json``.

    Raises:
        UserError: the file is damaged.
    """
    with failures_of_file(record, "not a record of a training"):
        content = json.loads(record.read_bytes())
        identity: Mapping[str, object] = content["manifest"]["identity"]
        return identity


def _description(path: Path, fields: Fields) -> ModelDescription:
    """Check the fields of a model file, and return its description without the shortlist.

    The key ``format`` is removed from ``fields``.

    Raises:
        UserError: the file has another version, or a field is not valid.
    """
    file_format = fields.pop("format", None)
    if file_format not in (FORMAT, WITHOUT_DIGEST):
        raise UserError(
            f"{path}: a model file of another version ({file_format}; expected {FORMAT}): train or "
            "import the model again"
        )
    description = validated(ModelDescription, fields, str(path))
    validated(_Languages, description.languages, f"{path}: languages")
    check_added(str(path), "PREPARATIONS", description.preparation, PREPARATIONS)
    if description.bpe_codes is not None:
        check_codes(description.bpe_codes, f"{path}: bpe_codes, line ")
    for side in EMBEDDING_TABLES:
        types = getattr(description, f"{side}_types")
        if len(set(types)) != len(types):
            raise UserError(
                f"{path}: {side}_types: the vocabulary contains a type twice"
            )
    return description
