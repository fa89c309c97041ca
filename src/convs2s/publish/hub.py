"""A model as a folder for others: of the Hugging Face Hub, or of graphs for ONNX Runtime.

A folder of the Hub is written, sent there and brought from there. What goes either way has a name
of ``HUB_FILES``, so that nothing else is fetched, and no folder is there before its model is read.
"""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import write_json, write_lines
from convs2s.model_file import FORMAT, ModelDescription, load_model, load_weights
from convs2s.publish.card import model_card, scored
from convs2s.publish.results import new_output

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MODEL_NAME = "model.safetensors"
CODES = "bpe_codes.txt"
VOCABULARIES = {side: f"vocabulary.{side}.txt" for side in ("source", "target")}
_XET = RuntimeError, TimeoutError  # what hf_xet raises, which brings large files
HUB_FILES = ("README.md", "config.json", MODEL_NAME, CODES, *VOCABULARIES.values())
"""All that a folder has, the codes only where there are any."""

USE = """
## Use

`pip install convs2s`, or its wheel, brings all that this needs. It translates the standard input,
one sentence a line, in the folder of `model.safetensors`:

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


def export_hub(model: Path, folder: Path, terms: str) -> None:
    """Write a new folder that a repository of the Hub can hold; ``terms``: the Hub's license name.

    Raises:
        UserError: the file is no model, or the folder exists.
    """
    with new_output(folder) as staged:
        _, description = load_model(model)
        shutil.copyfile(model, staged / MODEL_NAME)
        _describe(description, staged)
        head = yaml.safe_dump(_front_matter(model, description, terms), sort_keys=False)
        readme = f"---\n{head}---\n\n{model_card(model, name=MODEL_NAME)}{USE}"
        (staged / "README.md").write_text(readme, "utf-8")


def export_onnx(model: Path, folder: Path) -> None:
    """Write a new folder of graphs in fp32 that ONNX Runtime runs: encoder, decoder, output.

    Raises:
        UserError: the file is no model, or of another kind than ConvS2S, or the folder exists.
    """
    from convs2s.models import onnx_graphs as graphs
    from convs2s.models.onnx_search import listing

    with new_output(folder) as staged:
        load_model(model)  # checks the weights
        arrays, description = load_weights(model)
        if not description.architecture.runs_onnx:
            raise UserError(f"{model}: its kind of network has no graphs; only ConvS2S has")
        weights = [graphs.Weights(arrays, description.architecture, description.sizes)]
        encoder, parts = graphs.encoder(weights, "fp32")
        encoder.save(staged / "encoder.onnx")
        graphs.decoder(weights, "fp32", parts)[0].save(staged / "decoder.onnx")
        listing([weights[0].output()]).save(staged / "output.onnx")
        _describe(description, staged)


def _describe(description: ModelDescription, folder: Path) -> None:
    """Write what turns text into the indices of a model, and these into text."""
    write_lines(folder / VOCABULARIES["source"], description.source_types)
    write_lines(folder / VOCABULARIES["target"], description.target_types)
    if description.bpe_codes is not None:
        (folder / CODES).write_text(description.bpe_codes, "utf-8")
    stated = {
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
    write_json(folder / "config.json", stated)


def _front_matter(model: Path, description: ModelDescription, terms: str) -> dict[str, object]:
    """Return what the Hub reads of a card: each score with its test set, decoding and signature."""
    languages = [code.partition("_")[0] for code in description.languages.values()]
    kind = "summarization" if len(set(languages)) == 1 else "translation"
    results = []
    metrics = []
    for decoding, evaluation in scored(model):
        scores = []
        for name, score in evaluation.scores().items():
            metrics.append(_metric(name))
            scores.append(
                {
                    "type": _metric(name),
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
    stated: dict[str, object] = {
        "language": list(dict.fromkeys(languages)),
        "license": terms,
        "library_name": "convs2s",
        "pipeline_tag": kind,
    }
    if results:
        stated["metrics"] = list(dict.fromkeys(metrics))
        stated["model-index"] = [{"name": description.task, "results": results}]
    return stated


def _metric(name: str) -> str:
    """Return the Hub's name of a metric by that which reports print."""
    known = ("bleurt", "bleu", "chrf", "rouge", "comet")
    return next((metric for metric in known if metric in name.lower()), name)


def pull(repository: str, folder: Path, revision: str | None = None) -> None:
    """Bring the model of a repository of the Hub, such as ``USER/NAME``, into a new folder.

    Raises:
        UserError: the repository, or its model, is not there, a file is not the one that the Hub
            states, or the folder exists.
    """
    with new_output(folder) as staged:
        with _asking(repository) as hub:
            info = hub.model_info(repository, revision=revision, files_metadata=True)
            held = {file.rfilename: file for file in info.siblings or ()}
            if MODEL_NAME not in held:
                raise UserError(
                    f"{repository}: has no {MODEL_NAME}: name a repository of a model of convs2s"
                )
            for name in filter(held.__contains__, HUB_FILES):
                hub.hf_hub_download(repository, name, revision=info.sha, local_dir=staged)
                is_stated = held[name].blob_id == _git_id(staged / name)
                if lfs := held[name].lfs:
                    is_stated = lfs.sha256 == sha256(staged / name)
                if not is_stated:
                    raise UserError(
                        f"{repository}: {name}: its checksum is not the one that the Hub states: "
                        "it was damaged on its way, or a proxy changed it: pull it again"
                    )
            shutil.rmtree(staged / ".cache", ignore_errors=True)  # huggingface_hub's notes
        load_model(staged / MODEL_NAME)


def _git_id(path: Path) -> str:
    """Return what git calls a file by its content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


def push(folder: Path, repository: str) -> str:
    """Send a folder of ``export_hub`` to a repository of the Hub as one commit; return its address.

    Raises:
        UserError: the model is missing or damaged, or the repository is not there, or refuses.
    """
    load_model(folder / MODEL_NAME)
    with _asking(repository) as hub:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        paths = [folder / name for name in HUB_FILES if (folder / name).is_file()]
        changes: list[CommitOperationAdd | CommitOperationDelete]
        changes = [CommitOperationAdd(path.name, path) for path in paths]
        if not (folder / CODES).is_file() and hub.file_exists(repository, CODES):
            changes.append(CommitOperationDelete(CODES))  # of the model before
        # Not upload_folder, which may make several commits: readers would see a part.
        commit = hub.create_commit(repository, changes, commit_message="A model of convs2s")
        return str(commit.commit_url)


@contextmanager
def _asking(repository: str) -> Iterator["HfApi"]:
    """Yield what talks to the Hub; its errors, about a repository, are UserErrors of one line."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi, errors

    hub = HfApi(library_name="convs2s")
    try:
        yield hub
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"{repository}: no such repository at {hub.endpoint}, or none that you may use: check "
            "its name, make it there first, and log in to a private one (hf auth login)"
        ) from None
    except (HTTPError, ValueError, errors.EntryNotFoundError, ConnectionError, *_XET) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{repository}: {hub.endpoint} does not answer so: {reason}") from None
