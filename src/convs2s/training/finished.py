"""A training that has ended: its model file and records, and the states that may be removed.

A finished training reads its state once more where its model would only be exported again, such as
after its token stores were rebuilt to the same bytes. Without the state it would be trained again.
"""

import shutil
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from convs2s.config.model import Recipe
from convs2s.data.batches import collate
from convs2s.data.shortlist import Shortlist
from convs2s.data.store import TokenStore
from convs2s.errors import UserError
from convs2s.files.atomic import size_of, whole_files
from convs2s.files.checksums import forget_checksums, note_checksums
from convs2s.files.locks import try_lock
from convs2s.files.text import write_json
from convs2s.layout import results_of
from convs2s.manifest import manifest
from convs2s.model_file import ModelDescription, describe_model, recorded_identity, save_model
from convs2s.models.kernels import matmul
from convs2s.text.dictionary import read_dictionary
from convs2s.training.data import TrainingData
from convs2s.training.history import perplexity
from convs2s.training.identity import TrainingJob, digest_of
from convs2s.training.loading import validation_batches
from convs2s.training.progress import write_history
from convs2s.training.start import words_of_truecasers
from convs2s.training.state_folder import LOCK, STATE
from convs2s.training.trainer import Trainer, TrainingResult


def export(job: TrainingJob, data: TrainingData, trainer: Trainer, result: TrainingResult) -> None:
    """Write the model file of a training's result, and then the training's records.

    In this order no record speaks of a model that is not there: `finished_states` rests on both.
    """
    state, shortlist = trainer.state, trainer.updater.shortlist
    known = trainer.folder.identity
    # What is absent is left out: a source use where there is but one validation pair, a shortlist.
    summary: dict[str, object] = {
        "seed": job.seed,
        "epochs": state.epoch - 1,
        "updates": state.updates,
        "best_epoch": state.schedule.best_epoch,
        "validation_perplexity": perplexity(result.validation.loss),
        "stop_reason": state.schedule.stop_reason,
        "parameters": sum(tensor.numel() for tensor in result.weights.values()),
    }
    if result.validation.source_use is not None:
        summary["source_use"] = asdict(result.validation.source_use)
    if shortlist is not None:
        summary["shortlist"] = shortlist_figures(shortlist, data.valid, job.recipe)
    # What the model's card says of the data; nothing that scoring could change.
    described = data.description
    origin = described.model_dump(mode="json", include={"pairs", "sources", "stand_in"})
    description = ModelDescription(
        task=described.task,
        languages=described.languages.model_dump(),
        preparation=described.preparation,
        architecture=job.architecture,
        source_types=data.types["source"],
        target_types=data.types["target"],
        bpe_codes=data.bpe_codes,
        glossaries=list(described.vocabulary.glossaries),
        splittable=data.splittable,
        dictionary={} if job.dictionary is None else read_dictionary(job.dictionary),
        training={**summary, "identity": known, **origin},
        shortlist=shortlist,
        truecasers=words_of_truecasers(job, data),
    )
    save_model(job.output, result.weights, description)
    records = job.output.with_name("history.jsonl"), job.output.with_name("training.json")
    forget_checksums(records)
    write_history(records[0], state.history, {"stop": state.schedule.stop_reason})
    # What trained, not what exports: that may be another machine.
    machines = [epoch.machine for epoch in state.history if epoch.machine] or [trainer.machine]
    kinds = {
        key: "; ".join(dict.fromkeys(str(machine[key]) for machine in machines if key in machine))
        for key in ("gpu", "processor")
    }
    made = {**manifest(), **machines[-1], **{key: kind for key, kind in kinds.items() if kind}}
    made |= {"identity": known, "products": matmul.in_use()}
    curve = [epoch.valid_perplexity for epoch in state.history]
    write_json(records[1], {**summary, "curve": curve, "manifest": made})
    note_checksums(records, results_of(job.output))


def shortlist_figures(shortlist: Shortlist, store: TokenStore, recipe: Recipe) -> dict[str, float]:
    """Return what validation perplexity over a shortlist rests on.

    That is a batch's target types on average, and the share of the reference tokens that are
    outside and therefore count as unknown.
    """
    sizes, outside = [], 0
    for rows in validation_batches(store, recipe, shortlist):
        batch = collate(store, rows)
        types = shortlist.types(batch.source)
        sizes.append(len(types))
        outside += int(np.isin(batch.target, types, invert=True).sum())
    tokens = int(store.lengths("target").sum())
    return {"types": sum(sizes) / len(sizes), "outside": outside / tokens}


def finished_states(results: Path) -> dict[Path, int]:
    """Return the folders of states of trainings that have ended -> their bytes, in order of paths.

    A state of another recipe, seed or corpus than the finished model's is none of them: it may
    belong to a training that was stopped and is to go on. A UserError says that there is no such
    folder, or that the record of a training is damaged.
    """
    if not results.is_dir():
        raise UserError(f"{results}: no such folder: name one of results, or of a run")
    finished = {}
    parents = {path.parent.parent for path in whole_files(results)}
    for folder in sorted(path for path in parents if path.name == STATE):
        record = folder.with_name("training.json")
        if not record.is_file():
            continue
        identity = recorded_identity(record)
        # The record alone would not do: beside it may lie the model of another training.
        models = map(describe_model, sorted(folder.parent.glob("*.safetensors")))
        states = folder / digest_of(identity)
        if states.is_dir() and any(model.training.get("identity") == identity for model in models):
            finished[states] = size_of(states)
    return finished


def remove_state(path: Path) -> None:
    """Remove the folder of states of a training that has ended.

    A UserError: a training works there at this moment, or the folder cannot be removed.
    """
    folder = path.parent
    try:
        with (folder / LOCK).open("a") as lock:  # which each training holds while it runs
            try:
                is_free = try_lock(lock)
            except OSError as error:
                raise UserError(
                    f"{folder}: cannot be locked ({error.strerror}), so a training may be writing "
                    "here: use a file system with flock (docs/cluster.md)"
                ) from None
            if not is_free:
                raise UserError(
                    f"{folder}: a training is writing here: wait for it to end, then run the same "
                    "command again"
                )
            with suppress(FileNotFoundError):  # another process has removed it before
                # First: without it the training begins anew, whatever a kill leaves of the rest.
                (path / "last.safetensors").unlink(missing_ok=True)
                shutil.rmtree(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be removed: {error.strerror}") from None


def megabytes(size: int) -> str:
    """Write bytes as MB of a million."""
    return f"{size / 1e6:,.1f} MB"
