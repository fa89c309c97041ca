"""From a finished training to its model file and the records beside it."""

from collections.abc import Mapping

import torch

from convs2s.files.checksums import forget_checksums, note_checksums
from convs2s.files.text import write_json
from convs2s.manifest import manifest
from convs2s.model_file import ModelDescription, save_model
from convs2s.models.kernels import matmul
from convs2s.text.dictionary import read_dictionary
from convs2s.training.data import TrainingData
from convs2s.training.history import TrainingSummary, perplexity, without_absent
from convs2s.training.job import TrainingJob
from convs2s.training.shortlisting import shortlist_figures
from convs2s.training.start import words_of_truecasers
from convs2s.training.trainer import Trainer, TrainingResult
from convs2s.training.watch import write_history


def export(job: TrainingJob, data: TrainingData, trainer: Trainer, result: TrainingResult) -> None:
    """Write the model file of a training's result, and then the training's records.

    In this order records never speak of a model that could not be written: what removes the states
    of finished trainings rests on both.
    """
    summary = without_absent(_summary(job, data, trainer, result))
    save_model(job.output, result.weights, _description(job, data, trainer, summary))
    records = job.output.with_name("history.jsonl"), job.output.with_name("training.json")
    forget_checksums(records)
    state = trainer.state
    write_history(records[0], state.history, {"stop": state.schedule.stop_reason})
    machine: dict[str, object] = {
        "threads": job.threads,
        "workers": trainer.workers.count,
        "products": matmul.in_use(),
    }
    if torch.device(trainer.device).type == "cuda":
        machine["gpu"] = torch.cuda.get_device_name(trainer.device)
    made = {"identity": trainer.folder.identity, **machine, **manifest()}
    write_json(records[1], {**summary, "manifest": made})
    note_checksums(records)


def _summary(
    job: TrainingJob, data: TrainingData, trainer: Trainer, result: TrainingResult
) -> TrainingSummary:
    state, shortlist = trainer.state, trainer.updater.shortlist
    figures = None if shortlist is None else shortlist_figures(shortlist, data.valid, job.recipe)
    return TrainingSummary(
        seed=job.seed,
        epochs=state.epoch - 1,
        updates=state.updates,
        best_epoch=state.schedule.best_epoch,
        validation_perplexity=perplexity(result.loss),
        stop_reason=state.schedule.stop_reason,
        parameters=sum(tensor.numel() for tensor in result.weights.values()),
        source_use=result.source_use,
        shortlist=figures,
    )


def _description(
    job: TrainingJob, data: TrainingData, trainer: Trainer, summary: Mapping[str, object]
) -> ModelDescription:
    """Return what the model file says of its weights."""
    described = data.description
    return ModelDescription(
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
        training={**summary, **_origin(data, trainer)},
        shortlist=trainer.updater.shortlist,
        truecasers=words_of_truecasers(job, data),
    )


def _origin(data: TrainingData, trainer: Trainer) -> dict[str, object]:
    """Return what the model's card says of the data; nothing that scoring could change."""
    described = data.description.model_dump(mode="json", include={"pairs", "sources", "stand_in"})
    return {"identity": trainer.folder.identity, **described}
