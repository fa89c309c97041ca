"""Models as folders for other programs: for the Hugging Face Hub, or as graphs for ONNX Runtime.

A folder for the Hub can be written, pushed to the Hub and pulled from it. Only the files of
``HUB_FILES`` are pushed or pulled, so that no other file is fetched. A pulled folder gets its name
only after its model has been read.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import yaml

from convs2s.errors import UserError
from convs2s.files.atomic import atomic_folder
from convs2s.files.checksums import sha256
from convs2s.files.text import write_json, write_lines
from convs2s.model_file import FORMAT, ModelDescription, load_model, load_weights
from convs2s.publish.card import model_card, scored

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MODEL_NAME = "model.safetensors"
CARD = "README.md"
# The line of a card that states the checksum of the model file.
_CHECKSUM = re.compile("^- SHA-256: ([0-9a-f]{64})$", re.MULTILINE)
CODES = "bpe_codes.txt"
VOCABULARIES = {side: f"vocabulary.{side}.txt" for side in ("source", "target")}
HUB_FILES = (CARD, "config.json", MODEL_NAME, CODES, *VOCABULARIES.values())
"""The names of all files in a folder for the Hub. Models without BPE have no file of codes."""

# Errors of hf_xet, which downloads large files.
_XET = RuntimeError, TimeoutError

USE = """
## Use

`pip install convs2s`, or its wheel, brings all that a ConvS2S model needs; other networks need
`convs2s[train]`. It translates the standard input, one sentence a line, in the folder of
`model.safetensors`:

```python
import sys

from convs2s import Translator

translator = Translator.load("model.safetensors")
texts = [line.rstrip("\\n") for line in sys.stdin]
for translation in translator.translate(texts):
    print(translation.text)
```

The model file holds its vocabularies and BPE codes; the text files show them to other programs.
"""


def export_hub(
    model: Path,
    folder: Path,
    terms: str,
) -> None:
    """Write a new folder with the files of a repository of the Hub.

    Args:
        model: the model file.
        folder: the folder to write.
        terms: the license, by its name on the Hub.

    Raises:
        UserError: the file is not a model, or the folder exists.
    """
    with atomic_folder(folder) as staged:
        _, description = load_weights(model)
        shutil.copyfile(model, staged / MODEL_NAME)
        _describe(description, staged)
        head = yaml.safe_dump(_front_matter(model, description, terms), sort_keys=False)
        readme = f"---\n{head}---\n\n{model_card(model, name=MODEL_NAME)}{USE}"
        (staged / CARD).write_text(readme, "utf-8")


def export_onnx(model: Path, folder: Path) -> None:
    """Write a new folder with the graphs of a model for ONNX Runtime, in fp32.

    The graphs are the encoder, the decoder and the output layer. The folder also has a short
    program that translates with them.

    Raises:
        UserError: the file is not a model, the model is not ConvS2S, or the folder exists.
    """
    from convs2s.models import onnx_graphs as graphs
    from convs2s.models.onnx_search import listing

    with atomic_folder(folder) as staged:
        # Only load_model compares the weights with the network.
        load_model(model)
        arrays, description = load_weights(model)
        if not description.architecture.runs_onnx:
            raise UserError(
                f"{model}: its kind of network has no graphs; export a ConvS2S model"
            )
        # A list, because the graphs can also be those of an ensemble.
        weights = [graphs.Weights(arrays, description.architecture, description.sizes)]
        encoder, parts = graphs.encoder(weights, "fp32")
        encoder.save(staged / "encoder.onnx")
        graphs.decoder(weights, "fp32", parts)[0].save(staged / "decoder.onnx")
        listing([weights[0].output()]).save(staged / "output.onnx")
        example = Path(__file__).with_name("data") / "translate.py.txt"
        shutil.copyfile(example, staged / "translate.py")
        _describe(description, staged)


def _describe(description: ModelDescription, folder: Path) -> None:
    """Write what a program needs besides the weights: vocabularies, BPE codes and settings."""
    write_lines(folder / VOCABULARIES["source"], description.source_types)
    write_lines(folder / VOCABULARIES["target"], description.target_types)
    if description.bpe_codes is not None:
        (folder / CODES).write_text(description.bpe_codes, "utf-8")
    settings = {
        "library_name": "convs2s",
        "format": FORMAT,
        "task": description.task,
        "languages": description.languages,
        "preparation": description.preparation,
        "glossaries": description.glossaries,
        "splittable": description.splittable,
        "truecasers": description.truecasers,
        "dictionary": description.dictionary,
        "architecture": description.architecture.model_dump(mode="json"),
    }
    write_json(folder / "config.json", settings)


def _front_matter(
    model: Path,
    description: ModelDescription,
    terms: str,
) -> dict[str, object]:
    """Return the fields at the top of a card, which the Hub reads.

    They include each score with its test set, decoding and signature. If the source and the target
    language are the same, the model is one for summarization.
    """
    languages = [code.partition("_")[0] for code in description.languages.values()]
    kind = "summarization" if len(set(languages)) == 1 else "translation"
    results = []
    metrics = []
    for decoding, evaluation in scored(model):
        scores = []
        for name, score in evaluation.scores().items():
            # "bleurt" is tried before "bleu", because each name with "bleurt" also has "bleu".
            known = ("bleurt", "bleu", "chrf", "rouge", "comet")
            metric = next((word for word in known if word in name.lower()), name)
            metrics.append(metric)
            scores.append(
                {
                    "type": metric,
                    "name": f"{name}, {decoding}",
                    "value": round(score.score, 2),
                    "args": {"signature": score.signature},
                }
            )
        dataset = {
            "name": f"{evaluation.test_set} of {description.task}, {evaluation.lines} lines",
            "type": description.task,
            "split": evaluation.test_set,
        }
        results.append({"task": {"type": kind}, "dataset": dataset, "metrics": scores})
    fields: dict[str, object] = {
        "language": list(dict.fromkeys(languages)),
        "license": terms,
        "library_name": "convs2s",
        "pipeline_tag": kind,
    }
    if results:
        fields["metrics"] = list(dict.fromkeys(metrics))
        fields["model-index"] = [{"name": description.task, "results": results}]
    return fields


def pull(
    repository: str,
    folder: Path,
    revision: str | None = None,
) -> None:
    """Download the model of a repository of the Hub, such as ``USER/NAME``, into a new folder.

    Raises:
        UserError: the repository does not exist or has no model, the checksum of a file is not the
            one that the Hub states, the Hub does not answer, or the folder exists.
    """
    with atomic_folder(folder) as staged:
        with _hub_client(repository) as hub:
            info = hub.model_info(repository, revision=revision, files_metadata=True)
            files = {file.rfilename: file for file in info.siblings or ()}
            if MODEL_NAME not in files:
                raise UserError(
                    f"{repository}: has no {MODEL_NAME}: name a repository of a model of convs2s"
                )
            for name in HUB_FILES:
                if name not in files:
                    continue
                hub.hf_hub_download(
                    repository, name, revision=info.sha, local_dir=staged
                )
                # The Hub states the SHA-256 of a large file (Git LFS), and git's identifier of a
                # small one.
                lfs = files[name].lfs
                if lfs:
                    is_intact = sha256(staged / name) == lfs.sha256
                else:
                    is_intact = _git_id(staged / name) == files[name].blob_id
                if not is_intact:
                    raise UserError(
                        f"{repository}: {name}: its checksum is not the one that the Hub states; "
                        "it was damaged on its way, or a proxy changed it; pull it again"
                    )
            # Remove what huggingface_hub has noted for itself.
            shutil.rmtree(staged / ".cache", ignore_errors=True)
        load_weights(staged / MODEL_NAME)  # check the model


def _git_id(path: Path) -> str:
    """Return git's identifier of a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


def push(folder: Path, repository: str) -> str:
    """Upload a folder of ``export_hub`` to a repository of the Hub; return the commit's address.

    All files are changed in one commit. BPE codes of an earlier model are deleted if this model has
    none.

    Raises:
        UserError: the model is missing or damaged, another file is not of this model, or the
            repository does not exist or refuses.
    """
    _, description = load_weights(folder / MODEL_NAME)
    _check_described(description, folder)
    with _hub_client(repository) as hub:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        paths = [folder / name for name in HUB_FILES if (folder / name).is_file()]
        changes: list[CommitOperationAdd | CommitOperationDelete]
        changes = [CommitOperationAdd(path.name, path) for path in paths]
        if not (folder / CODES).is_file() and hub.file_exists(repository, CODES):
            changes.append(CommitOperationDelete(CODES))
        # upload_folder may make several commits, between which the repository would be incomplete.
        commit = hub.create_commit(
            repository, changes, commit_message="A model of convs2s"
        )
        return str(commit.commit_url)


def _check_described(description: ModelDescription, folder: Path) -> None:
    """Check that the files beside a model are those of this model.

    The card may have been edited, but must not state the checksum of another model.

    Raises:
        UserError: a file differs from what the model file holds.
    """
    with TemporaryDirectory(prefix="convs2s-") as temporary:
        _describe(description, Path(temporary))
        for expected in Path(temporary).iterdir():
            given = folder / expected.name
            if given.is_file() and given.read_bytes() != expected.read_bytes():
                raise _of_another_model(given)
    card = folder / CARD
    stated = _CHECKSUM.search(card.read_text("utf-8")) if card.is_file() else None
    if stated and stated[1] != sha256(folder / MODEL_NAME):
        raise _of_another_model(card)


def _of_another_model(path: Path) -> UserError:
    return UserError(
        f"{path}: is not of {MODEL_NAME} beside it: it was changed, or belongs to another model; "
        "write a new folder by `convs2s export hub`"
    )


@contextmanager
def _hub_client(repository: str) -> Iterator["HfApi"]:
    """Yield a client of the Hub, and turn its errors into UserErrors that name the repository."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi, errors

    hub = HfApi(library_name="convs2s")
    try:
        yield hub
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"{repository}: no such repository at {hub.endpoint}, or none that you may use: check "
            "its name, make it there first, and for a private one log in by `hf auth login`"
        ) from None
    except (
        HTTPError,
        ValueError,
        errors.EntryNotFoundError,
        ConnectionError,
        *_XET,
    ) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{repository}: request to {hub.endpoint} failed: {reason}"
        ) from None
