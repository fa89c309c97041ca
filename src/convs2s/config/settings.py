"""The whole configuration, and checks of whether its parts fit together."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from convs2s.config.claims import Claim, check_claim
from convs2s.config.corpus import PREPARATIONS, TITLE_FILES
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import check_added
from convs2s.config.file_reference import (
    Download,
    download_size,
    known_download,
    local_path,
    parse_file_reference,
)
from convs2s.config.measures import MEASURES
from convs2s.config.messages import check_known, unknown
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Row, Table
from convs2s.config.scale import Scale
from convs2s.config.section import Section, T, Values
from convs2s.config.task import DatasetMetadata, Task
from convs2s.errors import UserError


@dataclass(frozen=True)
class Settings:
    """The whole configuration: every default filled in, ``extends`` and ``text`` resolved."""

    options: Options  # config.yaml
    scale: Scale  # the file of config/scales that options.scale names
    tasks: Mapping[str, Task]  # with their headlines at this scale
    models: Mapping[str, ModelSettings]
    model_files: Mapping[str, str]  # the file of config/ that states each model
    decodings: Mapping[str, DecodingSettings]
    tables: Mapping[str, Table]  # all of config/paper.yaml
    paper: Mapping[str, Table]  # the tables that have rows at this scale
    claims: Mapping[str, Claim]
    phrases: Mapping[str, Phrases]
    downloads: Mapping[str, Download]  # by URL
    costs: Costs
    # Task whose file is not valid -> its error. Such a task is not in ``tasks``.
    broken: Mapping[str, UserError] = field(default_factory=dict)

    def check_whole(self, tasks: Iterable[str]) -> None:
        """Raise the error of the first of these tasks whose file is not valid."""
        for name in tasks:
            if name in self.broken:
                raise self.broken[name]

    def warnings(self) -> list[str]:
        """Return a warning for each error in a task's file, with the tasks that are left out."""
        # Tasks that share a broken text have the same error.
        left_out: dict[str, list[str]] = {}
        for name, error in self.broken.items():
            left_out.setdefault(str(error), []).append(name)
        return [
            f"{error} (left out: {', '.join(names)})"
            for error, names in left_out.items()
        ]

    def tasks_of_tables(self) -> set[str]:
        """Return the tasks of the rows that the papers' tables show, and their stand-ins."""
        named: set[str | None] = set()
        for table in self.paper.values():
            for row in table.rows:
                if row.task is not None:
                    named |= {row.task, self.scale.task_for(row.task)}
        return {name for name in named if name}

    def model_references(self) -> set[str]:
        """Return the model files from which trainings start or tasks take their vocabularies."""
        references: set[str] = set()
        for model in self.models:
            references.update(self.start_of(model))
        for task in self.tasks.values():
            if task.vocabulary_of is not None:
                references.add(task.vocabulary_of)
        return references

    def start_of(self, model: str) -> list[str]:
        """Return a list with the model file from which a training starts, or an empty list.

        ``model`` is the name of the trained model.
        """
        start = self.models[model].training.start
        return [start.model] if start else []

    def decoding_of_list(self) -> dict[str, object]:
        """Return the decoding that made the n-best lists to be rescored, as plain data.

        If the scale has a stand-in for other systems' lists, this is the decoding of the stand-in.
        Otherwise, the scores in a list are sums of log-probabilities, so the length penalty is 0.
        """
        if self.scale.n_best is None:
            return {"length_penalty": 0.0}
        return self.decodings[self.scale.n_best.decoding].model_dump(mode="json")

    def needed_references(self, name: str) -> list[str]:
        """Return the references to all files that a task's headline needs.

        They are the files of the task and the URLs of the model files from which its training
        starts or its vocabularies are taken.
        """
        task = self.tasks[name]
        references = task.references(task.splits)
        if task.released:
            return references
        models = self.start_of(task.headline.model)
        if task.vocabulary_of is not None:
            models.append(task.vocabulary_of)
        return references + [model for model in models if "://" in model]

    def downloads_by_place(self) -> dict[str, Download]:
        """Return the entry of each file of the downloads folder, by its path below the folder.

        An address with http and the same address with https have the same path. Whichever of them a
        task names, the one in config/downloads.yaml is used, so that its checksum applies. If
        config/downloads.yaml has neither, the address with https is used.

        Files that the workflow makes itself (demo://, titles://) are included.
        """
        references = self.model_references()
        for task in self.tasks.values():
            references.update(task.references())
        files = map(parse_file_reference, references)
        urls = {file.location for file in files if file.is_url}
        places = {}
        for url in sorted(urls):
            download = known_download(url, self.downloads)
            if download is None:
                # Not validated, because demo:// and titles:// are not valid in an entry.
                download = Download.model_construct(url=url)
            # https:// comes after http:// in the sorted list, and so replaces it.
            places[str(local_path(url, Path()))] = download
        return places

    def download_at(self, place: str) -> dict[str, object]:
        """Return the source and the checksums of a file, as arguments of ``download_file``.

        ``place`` is the file's path below the downloads folder.

        Raises:
            UserError: No task needs a file at this path. The message suggests a similar path.
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
        """Return whether a task's training files have ``scatter_above`` megabytes or more.

        Files of unknown size count as 0, and so do all files at a scale with the generated mirror.
        """
        size = 0
        if not self.scale.generated_mirror:
            references = chain.from_iterable(self.tasks[name].file_pairs("train"))
            files = map(parse_file_reference, references)
            for location in {file.location for file in files}:
                size += download_size(location, self.downloads)
        return size >= 1_000_000 * self.options.scatter_above

    def dataset_metadata(self, name: str) -> DatasetMetadata:
        """Return the description that is written beside the token stores of a task."""
        # config/downloads.yaml does not describe the files of the generated mirror.
        downloads = {} if self.scale.generated_mirror else self.downloads
        return self.tasks[name].dataset_metadata(downloads, self.scale.stand_in)

    def heading(self, names: Iterable[str]) -> str:
        """Return the heading of a plot: the names in it, and the scale if it is not the paper's."""
        scale = self.options.scale
        return " · ".join(names if scale == "paper" else [*names, scale])

    def model(self, name: str) -> ModelSettings:
        """Return the model with this name.

        Raises:
            UserError: There is none. The message suggests a similar name.
        """
        return _named(self.models, "model", name)

    def effective(
        self,
        task_name: str,
        model: str | None = None,
        decoding: str | None = None,
    ) -> dict[str, Values]:
        """Return all settings that apply to a task, as ``convs2s config --task`` prints them.

        The model and the decoding are those of the task's headline by default.
        """
        self.check_whole([task_name])
        task = _named(self.tasks, "task", task_name)
        model = model or task.headline.model
        decoding = decoding or task.headline.decoding
        decoding_settings = _named(self.decodings, "decoding", decoding)
        return {
            "task": _with_name(task_name, task),
            "model": _with_name(model, self.model(model)),
            "decoding": _with_name(decoding, decoding_settings),
            "scale": _with_name(self.options.scale, self.scale),
            "options": self.options.model_dump(
                mode="json", exclude={"scale", "overrides"}
            ),
        }

    def check_names(
        self,
        where: str,
        noun: str,
        *names: str | None,
    ) -> None:
        """Check that names that the configuration states are known; None is not checked.

        ``noun`` is what has these names: task, model, decoding, phrases or table.

        Raises:
            UserError: A name is unknown. The message begins with ``where`` and suggests a similar
                name.
        """
        known: dict[str, Collection[str]] = {
            # The name of a broken task is known, so that the file is reported and not the name.
            "task": self.tasks.keys() | self.broken.keys(),
            "model": self.models,
            "decoding": self.decodings,
            "phrases": self.phrases,
            "table": self.tables,
        }
        for name in names:
            check_known(where, noun, name, known[noun])


def _with_name(name: str, section: Section) -> Values:
    return {"name": name, **section.model_dump(mode="json")}


def _named(
    known: Mapping[str, T],
    noun: str,
    name: str,
) -> T:
    if name not in known:
        raise UserError(unknown(noun, name, known))
    return known[name]


def without_broken_tasks(
    settings: Settings, place: Callable[[str, str, str], str]
) -> Settings:
    """Return the settings without the tasks whose keys do not fit each other or the rest.

    These tasks are added to ``broken``, and so are all tasks that use the text of a broken task.
    ``place`` returns the beginning of messages about an entry from its kind (such as "tasks"), its
    file and its name.
    """
    broken = dict(settings.broken)
    for name, task in settings.tasks.items():
        where = place("tasks", f"config/tasks/{name}.yaml", name)
        try:
            _check_task(where, task, settings)
        except UserError as error:
            broken[name] = error
    for name, task in settings.tasks.items():
        if task.text_name in broken:
            broken.setdefault(name, broken[task.text_name])
    whole = {name: task for name, task in settings.tasks.items() if name not in broken}
    return replace(settings, tasks=whole, broken=broken)


def check_references(settings: Settings, origins: Mapping[str, str]) -> None:
    """Check the parts of the configuration against each other.

    Every name must refer to something that exists, and the keys of each claim and row must fit each
    other. Rows of a broken task are not checked further.

    ``origins`` has the file or flag that states each key of config.yaml.

    Raises:
        UserError: A check fails. The message names the file and the key, and suggests a name in
            place of an unknown one.
    """
    options = settings.options
    where = f"{origins['overrides']}: overrides"
    for kind, entries in options.overrides:
        settings.check_names(f"{where}.{kind}", kind.removesuffix("s"), *entries)
    settings.check_names(f"{origins['tasks']}: tasks", "task", *options.tasks or ())
    known_gpus = [gpu.name for gpu in settings.costs.gpus]
    where = f"{origins['preflight_gpu']}: preflight_gpu"
    check_known(where, "GPU", options.preflight_gpu, known_gpus)
    _check_scale(f"config/scales/{options.scale}.yaml", settings)
    for number, training in enumerate(settings.costs.trainings, start=1):
        where = f"config/costs.yaml: training {number}"
        settings.check_names(f"{where}: text", "task", training.text)
        settings.check_names(f"{where}: model", "model", training.model)
    for name, table in settings.paper.items():
        for column in table.columns:
            where = f"config/paper.yaml: {name}: column {column.key}: measure"
            check_added(where, "METRICS", column.measure, MEASURES)
        for number, row in enumerate(table.rows, start=1):
            _check_row(f"config/paper.yaml: {name}: row {number}", row, table, settings)
    for name, claim in settings.claims.items():
        check_claim(claim, settings.tables, f"config/claims.yaml: {name}")


def _check_scale(where: str, settings: Settings) -> None:
    """Check the folder of the results, and all names that the scale states."""
    scale = settings.scale
    results = scale.results_dir
    is_among_downloads = Path(results).is_relative_to(scale.downloads_dir)
    # Commands would read a path that begins with - as an option.
    if results.startswith("-") or results == "." or is_among_downloads:
        raise UserError(
            f"{where}: results_dir: expected a folder outside of downloads_dir, other than the "
            "current folder, whose name does not begin with -"
        )
    settings.check_names(f"{where}: without", "table", *scale.without)
    settings.check_names(f"{where}: seeds_of", "table", *scale.seeds_of)
    for left_out in scale.left_out:
        settings.check_names(f"{where}: left_out.models", "model", *left_out.models)
        settings.check_names(f"{where}: left_out.tasks", "task", *left_out.tasks)
    for key, noun in (("tasks", "task"), ("models", "model"), ("phrases", "phrases")):
        for name, stand_in in getattr(scale, key).items():
            settings.check_names(f"{where}: {key}", noun, name)
            settings.check_names(f"{where}: {key}.{name}", noun, stand_in)
    if scale.shrink is not None:
        models = scale.shrink.keep_recipe
        settings.check_names(f"{where}: shrink.keep_recipe", "model", *models)
    if scale.n_best is not None:
        model = scale.n_best.model
        _check_run(f"{where}: n_best.", None, model, scale.n_best.decoding, settings)


def _check_run(
    where: str,
    task: Task | None,
    model: str,
    decoding: str | None,
    settings: Settings,
) -> None:
    """Check that a model and a decoding exist, and fit each other and the task.

    Messages begin with ``where`` and the name of the key, which is model or decoding.
    """
    settings.check_names(f"{where}model", "model", model)
    settings.check_names(f"{where}decoding", "decoding", decoding)
    network = settings.models[model].architecture
    # A model selects its vocabulary with the word alignment, which aligns whole words.
    if task and network.selection and task.vocabulary.kind != "word":
        raise UserError(
            f"{where}model: '{model}' selects its vocabulary by aligned words, but the vocabulary "
            f"of '{task.name}' has pieces of words; name a task whose vocabulary.kind is word, or "
            "a model without vocabulary_selection"
        )
    if decoding is None or network.has_attention:
        return
    if settings.decodings[decoding].replace_unknown:
        raise UserError(
            f"{where}decoding: '{decoding}' replaces unknown words by attention, which '{model}' "
            "does not have; name a decoding with replace_unknown: false, such as lstm_beam2"
        )


def _check_task(
    where: str,
    task: Task,
    settings: Settings,
) -> None:
    """Check that the keys of a task fit each other and the rest of the configuration.

    Raises:
        UserError: They do not. The message begins with ``where``.
    """
    source, target = task.language_pair
    if source == target:
        raise UserError(
            f"{where}: languages: source and target must differ, because files are named after "
            f"them; write for example {source}_text and {source}_summary"
        )
    has_valid_files = bool(task.corpus.valid)
    holds_out = task.hold_out is not None
    if has_valid_files == holds_out:
        raise UserError(
            f"{where}: expected either corpus.valid or hold_out, for validation data"
        )
    _check_vocabulary(f"{where}: vocabulary", task)
    _check_corpus(f"{where}: corpus", task, settings)
    for name in (task.preparation.train, task.preparation.test):
        check_added(f"{where}: preparation", "PREPARATIONS", name, PREPARATIONS)
    if task.metrics and task.metric == "rouge":
        raise UserError(
            f"{where}: metrics: their scores are lines of bleu.txt, but the task has metric: rouge;"
            " leave out metrics"
        )
    for name in task.metrics:
        check_added(f"{where}: metrics", "METRICS", name)
    headline = task.headline
    for key, tests in (
        ("rouge", task.rouge),
        ("n_best", task.n_best),
        ("headline.tests", headline.tests or ()),
    ):
        for test in tests:
            check_known(f"{where}: {key}", "test set", test, task.corpus.tests)
    _check_run(f"{where}: headline.", task, headline.model, headline.decoding, settings)
    _check_tuning(f"{where}: headline.decoding", task, headline.decoding, settings)


def _check_vocabulary(where: str, task: Task) -> None:
    """Check that the keys of a vocabulary fit each other and ``vocabulary_of``."""
    vocabulary = task.vocabulary
    has_size = vocabulary.source_size is not None or vocabulary.target_size is not None
    if vocabulary.kind == "bpe" and vocabulary.threshold and has_size:
        raise UserError(
            f"{where}: expected either a threshold or sizes with BPE, because tokens that a size "
            "leaves out are not split further; leave out source_size and target_size"
        )
    can_be_taken = vocabulary.joint and not vocabulary.threshold
    if task.vocabulary_of is not None and not can_be_taken:
        raise UserError(
            f"{where}: the vocabulary of a model (vocabulary_of) is joint and has no threshold; "
            "leave out joint and threshold"
        )


def _check_corpus(
    where: str,
    task: Task,
    settings: Settings,
) -> None:
    """Check the files of a task's corpus.

    All pairs of a test set must have the same number of references. Every reference to a file must
    be valid, and titles:// must name a file that is made from the papers of a task.
    """
    for name, pairs in task.corpus.tests.items():
        counts = [len(pair.references) for pair in pairs]
        if len(set(counts)) > 1:
            raise UserError(
                f"{where}.tests.{name}: the pairs of files have {', '.join(map(str, counts))} "
                "further references; expected the same number for each pair"
            )
        if counts[0] and task.metric == "bleu":
            raise UserError(
                f"{where}.tests.{name}: BLEU uses only the target; leave out references"
            )
    title_files: list[str] = []
    for name, other in settings.tasks.items():
        # A task that uses another task's text also uses the files of that task.
        if other.titles and other.text is None:
            title_files += [f"titles://{name}/{file}" for file in TITLE_FILES]
    for reference in task.references():
        try:
            # Both calls check the reference.
            parse_file_reference(reference).path(Path())
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        if reference.startswith("titles://"):
            check_known(where, "file", reference, title_files)


def _check_tuning(
    where: str,
    task: Task,
    decoding: str,
    settings: Settings,
) -> None:
    """Check that the task has the set on which a decoding's length penalty is tuned."""
    development = settings.scale.development_set(task, settings.decodings[decoding])
    tuned_on = f"{where}: length_penalty.tuned_on of '{decoding}'"
    check_known(tuned_on, "set", development, task.development_sets())


def _check_row(
    where: str,
    row: Row,
    table: Table,
    settings: Settings,
) -> None:
    """Check that the names in a row exist, and that its stand-in at this scale has its test set."""
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
    settings.check_names(f"{where}: task", "task", task_name)
    settings.check_names(f"{where}: phrases", "phrases", row.phrases)
    stand_in_name = settings.scale.task_for(task_name)
    if task_name in settings.broken or stand_in_name in settings.broken:
        return
    task = settings.tasks[task_name]
    check_known(f"{where}: testset", "test set", row.testset, task.corpus.tests)
    _check_run(f"{where}: ", task, model, row.decoding, settings)
    if stand_in_name is None:
        return
    # At this scale, the stand-in of the row's task must have the stand-in of the row's test set.
    stand_in = settings.tasks[stand_in_name]
    place = f"config/scales/{settings.options.scale}.yaml: tests: of the stand-in '{stand_in_name}'"
    if row.testset is not None:
        testset = settings.scale.testset_for(row.testset)
        check_known(place, "test set", testset, stand_in.corpus.tests)
    if row.decoding is not None:
        _check_tuning(place, stand_in, row.decoding, settings)
