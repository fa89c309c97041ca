"""The inputs of a run: the part of the configuration that its numbers depend on.

The inputs are known before anything has run. Their checksum (`ledger.fingerprint_of`) is the
fingerprint that identifies a run in a ledger. The inputs contain everything that can change a
number: the text and its preparation, the network and its recipe, the seed, the version of training,
the decoding, the test set, and the known checksums of downloads. They do not contain the names and
descriptions of tasks and models, or the machine.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain

from convs2s.config.file_reference import known_download, parse_file_reference
from convs2s.config.identity import counted, recipe_identity
from convs2s.config.settings import Settings
from convs2s.demo.corpus import CORPUS_SHA256
from convs2s.paper.ledger import RunNames
from convs2s.training.identity import TRAINING_VERSION

Inputs = Mapping[str, object]  # only values that JSON can represent


class RunInputs:
    """The inputs of the runs that a configuration describes."""

    def __init__(self, settings: Settings) -> None:
        """Take the configuration with the paths as its files state them.

        A module of Snakemake may put its results into another folder, which must not change the
        inputs.
        """
        self._settings = settings
        # Cached, because many runs share a training, a test set or a decoding.
        self._trained = cache(self._inputs_of_training)
        self._test_set = cache(self._inputs_of_test_set)
        self._decoding = cache(self._inputs_of_decoding)

    def of(
        self,
        numbers: str,
        run: RunNames,
        phrases: str | None = None,
    ) -> Inputs:
        """Return the inputs of a file of numbers of a run.

        ``numbers`` is the kind of the file, such as ``bleu.json`` or ``training.json``. The test
        set and decoding of ``run``, and ``phrases``, are None if the numbers do not depend on them.
        """
        task = self._settings.tasks[run.task]
        inputs: dict[str, object] = {
            "numbers": numbers,
            "run": run.run,
            "trained": self._trained(run.task, run.model),
        }
        if run.testset is not None:
            inputs["test set"] = self._test_set(run.task, run.testset)
        if run.decoding is not None:
            inputs["decoding"] = self._decoding(run.task, run.decoding)
        if not task.released:
            # The aligner changes numbers through the dictionary that replaces unknown words, or
            # through the shortlist of target words.
            replaces = (
                run.decoding is not None
                and self._settings.decodings[run.decoding].replace_unknown
            )
            uses_dictionary = replaces and task.has_dictionary
            has_shortlist = self._settings.models[run.model].architecture.selection
            if uses_dictionary or has_shortlist:
                inputs["aligner"] = task.alignment.aligner
        if phrases is not None:
            inputs["phrases"] = self._settings.phrases[phrases].model_dump(mode="json")
        if numbers.startswith("rouge"):
            rouge = task.rouge_settings(run.testset or "").model_dump(mode="json")
            has_exceptions = self._settings.options.rouge_exceptions is not None
            inputs["rouge"] = {**rouge, "exceptions": has_exceptions}
        if numbers.startswith("rescored"):
            listed: Inputs = {"file": task.n_best.get(run.testset or "")}
            if own := self._settings.scale.n_best:
                # The list of a run of this project stands in for that of another system.
                names = RunNames(
                    run.task, own.model, own.run, run.testset, own.decoding
                )
                listed = self.of("nbest", names)
            inputs["n-best list"] = listed
        return inputs

    def _inputs_of_training(self, task_name: str, model_name: str) -> Inputs:
        """Return what all seeds of a training share: text, recipe and version of training.

        For a released model, return its files and their checksums.
        """
        task = self._settings.tasks[task_name]
        model = self._settings.models[model_name]
        if task.released:
            references = task.released_references()  # references to files
            return {"released": references, **self._checksums(references)}
        pairs = {split: task.file_pairs(split) for split in ("train", "valid")}
        titles = task.titles.files if task.titles else ()
        files = chain(*pairs["train"], *pairs["valid"], titles)
        inputs: dict[str, object] = {
            "text": counted(task),
            "pairs": pairs,
            **self._checksums(files),
            **recipe_identity(model.architecture, model.training),
            "version": TRAINING_VERSION,
        }
        if (start := model.training.start) is not None:
            inputs["start"] = {
                **start.model_dump(mode="json"),
                **self._checksums([start.model]),
            }
        if task.vocabulary_of is not None:
            checksums = self._checksums([task.vocabulary_of])
            inputs["vocabulary of"] = {"model": task.vocabulary_of, **checksums}
        return inputs

    def _inputs_of_test_set(self, task_name: str, testset: str) -> Inputs:
        """Return the files of a test set: its source, its target and any further references."""
        task = self._settings.tasks[task_name]
        # Sets that are not test sets, such as the validation set, have one reference.
        count = task.reference_count(testset) if testset in task.corpus.tests else 1
        pairs = [*task.file_pairs(testset)]
        for number in range(1, count):
            pairs += task.reference_pairs(testset, number)
        return {"pairs": pairs, **self._checksums(chain(*pairs))}

    def _inputs_of_decoding(self, task_name: str, name: str) -> Inputs:
        """Return a decoding's settings, and the set that its length penalty is tuned on, if any."""
        decoding = self._settings.decodings[name]
        tuned_on = self._settings.scale.development_set(
            self._settings.tasks[task_name], decoding
        )
        stated = counted(decoding)
        if tuned_on is not None:
            stated["tuned"] = self._test_set(task_name, tuned_on)
        return stated

    def _checksums(self, files: Iterable[str]) -> Inputs:
        """Return the known checksums of files that are downloaded or generated.

        The result also says whether the downloads come from a generated mirror. Empty parts are
        omitted. A user's own file has no checksum here.
        """
        checksums: dict[str, str | None] = {}
        generated = {}
        locations = {parse_file_reference(file).location for file in files}
        for location in sorted(locations):
            if location.startswith("http"):
                known = known_download(location, self._settings.downloads)
                checksums[location] = (known.sha256 or known.md5) if known else None
            elif location.startswith("demo://"):
                folder = location.split("/")[2]
                generated[folder] = CORPUS_SHA256[folder]
        mirror = "generated" if self._settings.scale.generated_mirror else None
        inputs = {"checksums": checksums, "generated": generated, "mirror": mirror}
        return {key: value for key, value in inputs.items() if value}
