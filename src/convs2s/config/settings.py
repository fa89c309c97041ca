"""The whole configuration, and the checks that its parts fit each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.claims import Claim, check_claim
from convs2s.config.corpus import PREPARATIONS, TITLE_FILES
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import check_added
from convs2s.config.file_reference import (
    Download,
    check_model_reference,
    download_size,
    known_download,
    local_path,
    parse_file_reference,
)
from convs2s.config.measures import MEASURES
from convs2s.config.messages import check_known, unknown
from convs2s.config.model import ModelSettings, check_model
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Row, Table
from convs2s.config.scale import Scale
from convs2s.config.section import Section, T, Values
from convs2s.config.task import DatasetMetadata, Task
from convs2s.errors import UserError

_Place = Callable[[str, str, str], str]  # kind, file, entry -> what messages call the file


@dataclass(frozen=True)
class Settings:
    """The whole configuration: every default filled in, ``extends`` and ``text`` resolved."""

    options: Options  # config.yaml
    scale: Scale  # the file of config/scales that options.scale names
    tasks: Mapping[str, Task]  # their headlines at this scale
    models: Mapping[str, ModelSettings]
    decodings: Mapping[str, DecodingSettings]
    tables: Mapping[str, Table]  # all of config/paper.yaml
    paper: Mapping[str, Table]  # those of them that have rows at this scale
    claims: Mapping[str, Claim]
    phrases: Mapping[str, Phrases]
    downloads: Mapping[str, Download]  # by URL
    costs: Costs

    def model_references(self) -> set[str]:
        """Return the model files that trainings start from or tasks take vocabularies of."""
        references: set[str] = set()
        for model in self.models:
            references.update(self.start_of(model))
        for task in self.tasks.values():
            if task.vocabulary_of is not None:
                references.add(task.vocabulary_of)
        return references

    def start_of(self, model: str) -> list[str]:
        """Return the model file that a training starts from, if it starts from one."""
        start = self.models[model].training.start
        return [start.model] if start else []

    def decoding_of_list(self) -> dict[str, object]:
        """Return the decoding of another system's n-best list: its scores are sums."""
        if self.scale.n_best is None:
            return {"length_penalty": 0.0}
        return self.decodings[self.scale.n_best.decoding].model_dump(mode="json")

    def needed_references(self, name: str) -> list[str]:
        """Return what a task's headline needs, with the models to fetch that it begins with."""
        task = self.tasks[name]
        references = task.needed_references()
        if task.released:
            return references
        begun = self.start_of(task.headline.model)
        if task.vocabulary_of is not None:
            begun = [task.vocabulary_of, *begun]
        return references + [model for model in begun if "://" in model]

    def downloads_by_place(self) -> dict[str, Download]:
        """Return what is known of each file to fetch, by its place below the downloads folder.

        ``http://`` and ``https://`` of a file have the same place: its address is the one that
        config/downloads.yaml knows, whichever a task names, so that its checksum holds; where it
        knows neither, the latter. What the workflow makes itself (demo://, titles://) is there too.
        """
        references = self.model_references()
        for task in self.tasks.values():
            references.update(task.references())
        files = map(parse_file_reference, references)
        urls = {file.location for file in files if file.is_url}
        places = {}
        for url in sorted(urls):
            download = known_download(url, self.downloads)
            if download is None:  # not validated: it may be the workflow's own
                download = Download.model_construct(url=url)
            places[str(local_path(url, Path()))] = download
        return places

    def download_at(self, place: str) -> dict[str, object]:
        """Return where the file at a place below the downloads folder comes from.

        These are arguments of ``download_file``.

        Raises:
            UserError: There is none; names the nearest place.
        """
        downloads = self.downloads_by_place()
        check_known(f"{self.scale.downloads_dir}/{place}", "download", place, downloads)
        file = downloads[place]
        return {
            "url": file.url,
            "size": file.bytes,
            "sha256": file.sha256,
            "md5": file.md5,
        }

    def is_large(self, name: str) -> bool:
        """Return whether a task's training files have more than ``scatter_above`` megabytes.

        What the mirror stands in for is small, and so is what has no known size.
        """
        locations: set[str] = set()
        for pair in self.tasks[name].file_pairs("train"):
            locations.update(parse_file_reference(file).location for file in pair)
        known = 0
        if not self.scale.generated_mirror:
            known = sum(download_size(location, self.downloads) for location in locations)
        return known >= 1_000_000 * self.options.scatter_above

    def dataset_metadata(self, name: str) -> DatasetMetadata:
        """Return what stands beside the token stores of a task."""
        downloads = {} if self.scale.generated_mirror else self.downloads
        return self.tasks[name].dataset_metadata(downloads, self.scale.stand_in)

    def model(self, name: str) -> ModelSettings:
        """Return a model.

        Raises:
            UserError: There is none of this name; names the nearest one.
        """
        return _named(self.models, "model", name)

    def effective(
        self, task_name: str, model: str | None = None, decoding: str | None = None
    ) -> dict[str, Values]:
        """Return all that applies to a task, with its headline's model and decoding by default."""
        task = _named(self.tasks, "task", task_name)
        model = model or task.headline.model
        decoding = decoding or task.headline.decoding
        return {
            "task": _with_name(task.name, task),
            "model": _with_name(model, self.model(model)),
            "decoding": _with_name(decoding, _named(self.decodings, "decoding", decoding)),
            "scale": _with_name(self.options.scale, self.scale),
            "options": self.options.model_dump(mode="json", exclude={"scale", "overrides"}),
        }


def _with_name(name: str, section: Section) -> Values:
    return {"name": name, **section.model_dump(mode="json")}


def _named(known: Mapping[str, T], noun: str, name: str) -> T:
    if name not in known:
        raise UserError(unknown(noun, name, known))
    return known[name]


def check_replacement(where: str, model: str, decoding: str, settings: Settings) -> None:
    """Check that unknown words are replaced only where there is attention to do it by."""
    has_attention = settings.models[model].architecture.has_attention
    if settings.decodings[decoding].replace_unknown and not has_attention:
        raise UserError(
            f"{where}: '{decoding}' replaces unknown words by attention, which '{model}' "
            "does not have; name one with replace_unknown: false, such as lstm_beam2"
        )


def check_selection(where: str, model: str, task: Task, settings: Settings) -> None:
    """Check that a vocabulary is selected only where it is of words, as the alignment's are."""
    if settings.models[model].architecture.selection and task.vocabulary.kind != "word":
        raise UserError(
            f"{where}: '{model}' selects its vocabulary by aligned words, but '{task.name}' has "
            "one of pieces of words; name a word task, or a model without vocabulary_selection"
        )


def check_references(settings: Settings, tasks_from: str, place: _Place) -> None:
    """Check every name in the configuration that refers to another part of it.

    ``tasks_from`` states ``tasks``; ``place`` gives a file also what overrides the entry.

    Raises:
        UserError: Names the file, the key and the nearest valid name.
    """
    _check_scale(f"config/scales/{settings.options.scale}.yaml", settings)
    for name in settings.options.tasks or ():
        check_known(f"{tasks_from}: tasks", "task", name, settings.tasks)
    for name, model in settings.models.items():
        where = f"{place('models', 'config/models.yaml', name)}: {name}"
        check_model(where, model.architecture, model.training)
    for name, task in settings.tasks.items():
        _check_task(place("tasks", f"config/tasks/{name}.yaml", name), task, settings)
    for number, training in enumerate(settings.costs.trainings, start=1):
        where = f"config/costs.yaml: training {number}"
        check_known(f"{where}: text", "task", training.text, settings.tasks)
        check_known(f"{where}: model", "model", training.model, settings.models)
    for name, table in settings.paper.items():
        for column in table.columns:
            where = f"config/paper.yaml: {name}: column {column.key}: measure"
            check_added(where, "METRICS", column.measure, MEASURES)
        for number, row in enumerate(table.rows, start=1):
            _check_row(f"config/paper.yaml: {name}: row {number}", row, table, settings)
    for name, claim in settings.claims.items():
        check_claim(claim, settings.tables, f"config/claims.yaml: {name}")


def _check_scale(where: str, settings: Settings) -> None:
    scale = settings.scale
    results = scale.results_dir
    is_among_downloads = Path(results).is_relative_to(scale.downloads_dir)
    if results.startswith("-") or results == "." or is_among_downloads:
        raise UserError(f"{where}: results_dir: name one outside of downloads_dir, without - first")
    for left_out in scale.left_out:
        for name in left_out.models:
            check_known(f"{where}: left_out.models", "model", name, settings.models)
        for name in left_out.tasks:
            check_known(f"{where}: left_out.tasks", "task", name, settings.tasks)
    for key, noun, stand_ins, known in (
        ("tasks", "task", scale.tasks, settings.tasks),
        ("models", "model", scale.models, settings.models),
        ("phrases", "phrases", scale.phrases, settings.phrases),
    ):
        for name, stand_in in stand_ins.items():
            check_known(f"{where}: {key}", noun, name, known)
            check_known(f"{where}: {key}.{name}", noun, stand_in, known)
    for name in scale.seeds_of:
        check_known(f"{where}: seeds_of", "table", name, settings.tables)
    if scale.shrink is not None:
        for name in scale.shrink.keep_recipe:
            check_known(f"{where}: shrink.keep_recipe", "model", name, settings.models)
    if scale.n_best is not None:
        model = scale.n_best.model
        decoding = scale.n_best.decoding
        check_known(f"{where}: n_best.model", "model", model, settings.models)
        check_known(f"{where}: n_best.decoding", "decoding", decoding, settings.decodings)
        check_replacement(f"{where}: n_best.decoding", model, decoding, settings)


def _check_task(where: str, task: Task, settings: Settings) -> None:
    source, target = task.language_pair
    if source == target:
        raise UserError(
            f"{where}: languages: source and target name the same files; write for example "
            f"{source}_text and {source}_summary"
        )
    if bool(task.corpus.valid) == (task.hold_out is not None):
        raise UserError(f"{where}: expected either corpus.valid or hold_out, for validation data")
    _check_vocabulary(f"{where}: vocabulary", task)
    _check_corpus(f"{where}: corpus", task, settings)
    for name in (task.preparation.train, task.preparation.test):
        check_added(f"{where}: preparation", "PREPARATIONS", name, PREPARATIONS)
    if task.metrics and task.metric == "rouge":
        raise UserError(f"{where}: metrics: they are lines of bleu.txt: leave them out with rouge")
    for name in task.metrics:
        check_added(f"{where}: metrics", "METRICS", name)
    for test in task.rouge:
        check_known(f"{where}: rouge", "test set", test, task.corpus.tests)
    for test in task.n_best:
        check_known(f"{where}: n_best", "test set", test, task.corpus.tests)
    headline = task.headline
    where = f"{where}: headline"
    check_known(f"{where}.model", "model", headline.model, settings.models)
    check_known(f"{where}.decoding", "decoding", headline.decoding, settings.decodings)
    check_replacement(f"{where}.decoding", headline.model, headline.decoding, settings)
    _check_tuning(f"{where}.decoding", task, headline.decoding, settings)
    for test in task.headline_tests():
        check_known(f"{where}.tests", "test set", test, task.corpus.tests)
    check_selection(f"{where}.model", headline.model, task, settings)


def _check_vocabulary(where: str, task: Task) -> None:
    """Check sizes, and that a task which takes a model's vocabulary says nothing else of it."""
    vocabulary = task.vocabulary
    has_size = vocabulary.source_size is not None or vocabulary.target_size is not None
    if vocabulary.kind == "bpe" and vocabulary.threshold and has_size:
        raise UserError(
            f"{where}: of BPE either a threshold or sizes: what a size leaves out is "
            "not split again; leave out source_size and target_size"
        )
    if task.vocabulary_of is None:
        return
    check_model_reference(task.vocabulary_of, f"{where}_of")
    if not vocabulary.joint or vocabulary.threshold:
        raise UserError(
            f"{where}: one that a model has (vocabulary_of) is joint and without a "
            "threshold; leave out joint and threshold"
        )


def _check_corpus(where: str, task: Task, settings: Settings) -> None:
    """Check that references are as many for all pairs of a test set, and what titles:// names."""
    for name, pairs in task.corpus.tests.items():
        counts = [len(pair.references) for pair in pairs]
        if len(set(counts)) > 1:
            raise UserError(
                f"{where}.tests.{name}: its pairs of files have {', '.join(map(str, counts))} "
                "further references; expected as many for each"
            )
        if counts[0] and task.metric == "bleu":
            raise UserError(f"{where}.tests.{name}: BLEU takes the target alone: no references")
    made: set[str] = set()
    for name, other in settings.tasks.items():
        if other.titles and other.text is None:
            made.update(f"titles://{name}/{file}" for file in TITLE_FILES)
    for reference in task.references():
        try:
            parse_file_reference(reference).path(Path())  # the place of a URL among the downloads
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        if reference.startswith("titles://"):
            check_known(where, "file", reference, made)


def _check_tuning(where: str, task: Task, decoding: str, settings: Settings) -> None:
    """Check that the task has the set that a decoding's length penalty is tuned on."""
    development = settings.scale.development_set(task, settings.decodings[decoding])
    noun = f"set for '{decoding}' to tune its length penalty on"
    check_known(where, noun, development, task.development_sets())


def _check_row(where: str, row: Row, table: Table, settings: Settings) -> None:
    columns = [column.key for column in table.columns]
    for part in ("paper", "v1", "best_run", "measures"):
        for key in getattr(row, part):
            check_known(f"{where}: {part}", "column", key, columns)
    for key, measure in row.measures.items():
        check_added(f"{where}: measures: {key}", "METRICS", measure, MEASURES)
    compared = row.comparison(where, table.columns)
    if compared is None:
        return
    task_name, model = compared
    for key, known in (
        ("task", settings.tasks),
        ("model", settings.models),
        ("decoding", settings.decodings),
        ("phrases", settings.phrases),
    ):
        check_known(f"{where}: {key}", key, getattr(row, key), known)
    if row.decoding is not None:
        check_replacement(f"{where}: decoding", model, row.decoding, settings)
    task = settings.tasks[task_name]
    check_known(f"{where}: testset", "test set", row.testset, task.corpus.tests)
    check_selection(f"{where}: model", model, task, settings)
    # The task that stands in for the row's must have the test set that stands in for the row's.
    if not settings.scale.has_task(task_name):
        return
    task = settings.tasks[settings.scale.task_for(task_name)]
    where = f"config/scales/{settings.options.scale}.yaml: tests: of the stand-in '{task.name}'"
    if row.testset is not None:
        stand_in = settings.scale.testset_for(row.testset)
        check_known(where, "test set", stand_in, task.corpus.tests)
    if row.decoding is not None:
        _check_tuning(where, task, row.decoding, settings)
