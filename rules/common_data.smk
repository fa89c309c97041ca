"""What the rules of texts, vocabularies and trainings take: their input functions, by stage."""

import os

from snakemake.io import IOFile

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.messages import check_known
from convs2s.costs.memory import requested_memory
from convs2s.pipeline.asked import check_model_file
from convs2s.pipeline.process import granted_gpus, slurm_options

with failures_in_one_line():
    # Place of a file below the downloads folder -> where it comes from and what is known of it.
    DOWNLOADS = settings.downloads_by_place()


def local_files(references):
    """Where the files of references lie once downloaded, as `files_by_location` takes them."""
    files = {file.location: file for file in map(parse_file_reference, references)}
    return [str(file.path(Path(layout.downloads))) for file in files.values()]


def download_source(wildcards):
    """Where a file comes from and what is known of it: the arguments of download_file."""
    place = f"{wildcards.host}/{wildcards.path}"
    with failures_in_one_line():
        check_known(f"{layout.downloads}/{place}", "download", place, DOWNLOADS)
    file = DOWNLOADS[place]
    return dict(url=file.url, size=file.bytes, sha256=file.sha256, md5=file.md5)


# Where a user's own file lies on this machine -> what the task calls it.
NAMES = {prefixed(path): path for path in OWN_FILES.values()}


def is_available(place):
    """Whether a file is there, can be downloaded, or may be made by rules of another workflow."""
    path = Path(NAMES[place])
    if is_there(path):
        return True
    if path.is_relative_to(layout.downloads):  # of which a rule claims all
        return str(path.relative_to(layout.downloads)) in DOWNLOADS
    return IS_MODULE


def is_extracted(task, part, files):
    """Whether what is made of a part of the corpus is there, so that nobody needs its files."""
    raw = layout.task(task).text("raw", part, "target")
    recorded = workflow.persistence.input(IOFile(raw))  # it outlives the text
    if recorded and recorded != sorted(files):
        return False
    sharing = [name for name in tasks if tasks[name].text_name == task]
    made = [layout.task(name).store(part) for name in sharing if part in ("train", "valid")]
    return any(map(is_there, [*made, raw]))


def sources_of(wildcards):
    """The files that a split is extracted from, or a further reference of one, by its number."""
    task, part, number = tasks[wildcards.task], wildcards.split, wildcards.get("number")
    with failures_in_one_line():
        pairs = task.reference_pairs(part, int(number)) if number else task.file_pairs(part)
        files = local_files(reference for pair in pairs for reference in pair)
        part += f".reference{number}" if number else ""
        if not is_extracted(task.name, part, files):
            on_disk.tasks[task.name].require_files(is_available)
    return files


def dataset_metadata(wildcards):
    """What stands beside the token stores of the wildcards' task."""
    downloads = {} if scale.generated_mirror else settings.downloads
    metadata = tasks[wildcards.task].dataset_metadata(downloads, scale.stand_in)
    return metadata.model_dump(mode="json")


def side_of(wildcards):
    """The side of the wildcards' language."""
    pair = tasks[wildcards.task].language_pair
    with failures_in_one_line():
        check_known(f"task {wildcards.task}", "language", wildcards.lang, pair)
    return SIDES[pair.index(wildcards.lang)]


def words(wildcards):
    """How often each word of the training text in the wildcards' language occurs."""
    return text_folder(wildcards).word_counts(side_of(wildcards))


def words_of_codes(wildcards):
    """The words that BPE codes are learned on: of one language, by its name, or of both."""
    pair = tasks[wildcards.task].language_pair
    named = [side for side, lang in zip(SIDES, pair) if wildcards.suffix == f".{lang}"]
    return [text_folder(wildcards).word_counts(side) for side in named or SIDES]


def bpe_codes(wildcards, language):
    """The BPE codes of a language, or no file where words are kept whole."""
    name = tasks[wildcards.task].vocabulary.bpe_codes_name(language)
    return [layout.task(wildcards.task).bpe_codes(name)] if name else []


def to_binarize(wildcards):
    """A part of the corpus, or the one that a block is of, with both sides' codes and vocabularies."""
    pair, folder = tasks[wildcards.task].language_pair, layout.task(wildcards.task)
    return {
        **training_text(wildcards, wildcards.part.partition(".")[0]),
        "bpe_codes": [path for language in pair for path in bpe_codes(wildcards, language)],
        "vocabularies": [folder.vocabulary(language) for language in pair],
    }


def dataset_of(wildcards):
    """What a training reads of its task's folder: token stores, descriptions, vocabularies, codes."""
    pair, folder = tasks[wildcards.task].language_pair, layout.task(wildcards.task)
    tables = [*map(folder.vocabulary, pair), *bpe_codes(wildcards, pair[0])]
    splits = ("train", "valid")
    return [*map(folder.store, splits), *map(folder.store_description, splits), *tables]


def gpus(wildcards):
    """GPUs of a training on each node: config.yaml's, else --resources gpu=N of one machine, else 1.

    A submission asks for them. Its job may have been granted fewer, or of a whole node all, of which
    it takes those that its memory and threads are for. On a cluster, N limits all jobs together.
    """
    if options.device == "cpu":
        return 0
    asked = options.gpus or 1
    if workflow.remote_exec:
        return min(granted_gpus(os.environ) or asked, asked)
    if options.gpus is None and GRANTED_GPUS is not None and not is_on_cluster():
        return GRANTED_GPUS // options.nodes
    return asked


def model_file(reference, where):
    """A model file that a training starts from, or that a task takes its vocabulary from."""
    (path,) = local_files([reference])
    if not (IS_MODULE or Path(path).is_relative_to(layout.downloads) or is_there(path)):
        with failures_in_one_line():
            check_model_file(path, where, on_disk)
    return path


def model_of_vocabulary(wildcards):
    """The model file that the wildcards' task takes its vocabulary from."""
    where = f"config/tasks/{wildcards.task}.yaml: vocabulary_of"
    return model_file(tasks[wildcards.task].vocabulary_of, where)


def tables_of_text(wildcards):
    """The tables of a text that a training takes, by the names of its options, and its beginning."""
    task, folder, tables = tasks[wildcards.task], text_folder(wildcards), {}
    start = settings.models[wildcards.model].training.start
    if start is not None:
        where = f"config/models.yaml: {wildcards.model}: training.start.from"
        tables["start"] = [model_file(start.model, where)]
    if task.has_dictionary:
        tables["dictionary"] = [folder.dictionary]
    if settings.models[wildcards.model].architecture.selection:
        tables["candidates"] = [folder.candidates]
    if task.preparation.truecase:
        tables["truecasers"] = [folder.truecaser(side) for side in SIDES]
    return tables
