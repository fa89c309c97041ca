"""What a run is computed from, as the configuration states it: known before anything has run.

Its checksum is the fingerprint that a ledger's lines are known by. It covers what can change a
number: the text and its preparation, the network and its recipe, the seed, the version of training,
the decoding, the test set, and the known checksums of downloads. Names of tasks and models, words
that describe them, and the machine are no part of it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256

from convs2s.config.corpus import CleanLimits
from convs2s.config.file_reference import known_download, parse_file_reference
from convs2s.config.model import ModelSettings
from convs2s.config.settings import Settings
from convs2s.config.task import SHARED_WITH_TEXT, Task
from convs2s.demo.corpus import CORPUS_SHA256
from convs2s.training.version import TRAINING_VERSION, recipe_identity

Inputs = Mapping[str, object]
"""Plain data, as JSON has it."""

_OF_TRAINING = set(SHARED_WITH_TEXT) - {"corpus", "paper_pairs"} | {"vocabulary"}
"""Keys of a task that its training text depends on, its files aside."""


def fingerprint_of(inputs: Inputs) -> str:
    """Return the SHA-256 of a run's inputs, in 64 hexadecimal digits."""
    return sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class RunInputs:
    """The inputs of the runs that a configuration describes."""

    def __init__(self, settings: Settings) -> None:
        """Take the configuration as its files state it, whatever folder a module puts it in."""
        self._settings = settings
        self._made: dict[tuple[object, ...], object] = {}

    def of(
        self,
        numbers: str,
        *,
        task: str,
        model: str,
        run: str,
        testset: str | None = None,
        decoding: str | None = None,
        phrases: str | None = None,
    ) -> Inputs:
        """Return the inputs of a file of numbers.

        Args:
            numbers: what kind of file it is: ``bleu.json``, ``training.json`` and others.
            task: whose data is read; model is what is run, and run its seed or ensemble.
            model: see task.
            run: see task.
            testset: test set of the task; None where none is read.
            decoding: how it is translated; None where nothing is.
            phrases: what the encoder reads in place of a test set.
        """
        inputs: dict[str, object] = {"numbers": numbers, "run": run}
        inputs["trained"] = self._once("trained", self._trained, task, model)
        if testset is not None:
            inputs["test set"] = self._once("test", self._test_set, task, testset)
        if decoding is not None:
            inputs["decoding"] = self._once("decoding", self._decoding, task, decoding)
        if self._reads_alignment(task, model, decoding):
            inputs["aligner"] = self._settings.tasks[task].alignment.aligner
        if phrases is not None:
            inputs["phrases"] = self._settings.phrases[phrases].model_dump(mode="json")
        if numbers.startswith("rouge"):
            inputs["rouge"] = self._rouge(task, testset or "")
        if numbers.startswith("rescored"):
            inputs["n-best list"] = self._n_best(task, testset or "")
        return inputs

    def _once(self, what: str, make: Callable[[str, str], object], *names: str) -> object:
        """Return what is made of two names, made once: many runs share it."""
        key = (what, *names)
        if key not in self._made:
            self._made[key] = make(*names)
        return self._made[key]

    def _trained(self, task_name: str, model_name: str) -> Inputs:
        """Return what a model is trained on and how, or the files of a released one."""
        task, model = self._settings.tasks[task_name], self._settings.models[model_name]
        if task.released:
            references = task.released_references()
            return {"released": references, **self._files(references)}
        pairs = [pair for split in ("train", "valid") for pair in task.file_pairs(split)]
        return {
            "text": _text(task),
            "pairs": {split: task.file_pairs(split) for split in ("train", "valid")},
            **self._files([*(side for pair in pairs for side in pair), *_papers(task)]),
            **recipe_identity(model.architecture, model.training),
            **self._start(task, model),
            "version": TRAINING_VERSION,
        }

    def _start(self, task: Task, model: ModelSettings) -> Inputs:
        """Return the models that a training starts from and has its vocabulary of."""
        start, found = model.training.start, dict[str, object]()
        if start is not None:
            stated = start.model_dump(mode="json")
            found["start"] = {**stated, **self._files([start.model])}
        if task.vocabulary_of is not None:
            files = self._files([task.vocabulary_of])
            found["vocabulary of"] = {"model": task.vocabulary_of, **files}
        return found

    def _reads_alignment(self, task_name: str, model_name: str, decoding: str | None) -> bool:
        """Say whether numbers rest on the links of aligned words."""
        task, model = self._settings.tasks[task_name], self._settings.models[model_name]
        if task.released:
            return False
        replaces = decoding is not None and self._settings.decodings[decoding].replace_unknown
        return (replaces and task.has_dictionary) or model.architecture.selects_vocabulary

    def _test_set(self, task_name: str, testset: str) -> Inputs:
        """Return the files of a test set, source and target and further references."""
        task = self._settings.tasks[task_name]
        count = task.reference_count(testset) if testset in task.corpus.tests else 1
        further = [task.reference_pairs(testset, number) for number in range(1, count)]
        pairs = [pair for part in (task.file_pairs(testset), *further) for pair in part]
        return {"pairs": pairs, **self._files(side for pair in pairs for side in pair)}

    def _decoding(self, task_name: str, name: str) -> Inputs:
        """Return a decoding, and the set that its length penalty is tuned on, if it is."""
        task, decoding = self._settings.tasks[task_name], self._settings.decodings[name]
        tuned_on = self._settings.scale.development_set(task, decoding)
        stated = decoding.model_dump(mode="json")
        if not stated["cuda_graphs"]:
            del stated["cuda_graphs"]  # as in ledgers that are older than this setting
        if tuned_on is None:
            return stated
        return {**stated, "tuned": self._once("test", self._test_set, task_name, tuned_on)}

    def _rouge(self, task: str, testset: str) -> Inputs:
        scored = self._settings.tasks[task].rouge_settings(testset).model_dump(mode="json")
        return {**scored, "exceptions": self._settings.options.rouge_exceptions is not None}

    def _n_best(self, task: str, testset: str) -> Inputs:
        """Return another system's list, or the run whose list stands in for it."""
        own = self._settings.scale.n_best
        if own is None:
            return {"file": self._settings.tasks[task].n_best.get(testset)}
        of = partial(self.of, "nbest", task=task, model=own.model, run=own.run)
        return of(testset=testset, decoding=own.decoding)

    def _files(self, references: Iterable[str]) -> Inputs:
        """Return what is known of files: checksums of downloads, versions of what is generated."""
        files = [parse_file_reference(one) for one in dict.fromkeys(references)]
        places = sorted({file.location for file in files if file.location.startswith("http")})
        known = {place: known_download(place, self._settings.downloads) for place in places}
        checksums = {place: one and (one.sha256 or one.md5) for place, one in known.items()}
        found: dict[str, object] = {"checksums": checksums} if checksums else {}
        generated = [file.location for file in files if file.location.startswith("demo://")]
        folders = sorted({location.split("/")[2] for location in generated})
        if folders:
            found["generated"] = {folder: CORPUS_SHA256[folder] for folder in folders}
        if self._settings.scale.generated_mirror:
            found["mirror"] = "generated"
        return found


def _text(task: Task) -> Inputs:
    """Return how a task's text is prepared, without what is as it was before there was a key."""
    stated = task.model_dump(mode="json", include=_OF_TRAINING)
    del stated["alignment"]["aligner"]  # of those runs alone that read its links
    if task.clean.tokens == CleanLimits().tokens:
        # Longer pairs ended a training: what was published had none of them.
        del stated["clean"]["tokens"]
    return stated


def _papers(task: Task) -> tuple[str, ...]:
    return task.titles.files if task.titles else ()
