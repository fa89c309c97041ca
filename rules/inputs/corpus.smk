"""The input functions of rules/corpus.smk."""

from convs2s.config.corpus import TITLE_FILES


def is_made(path):
    """Whether a file is there, or a rule, perhaps of another workflow, makes it."""
    if Path(path).exists():
        return True
    if Path(path).is_relative_to(prefixed(layout.downloads)):  # of which a rule claims all
        return str(Path(path).relative_to(prefixed(layout.downloads))) in DOWNLOADS
    return any(rule.is_producer(path) for rule in workflow.rules)


def is_extracted(task, split):
    """Whether what is made of a split is there, so that nobody needs its files any more."""
    sharing = [name for name in tasks if tasks[name].text_name == task]
    made = [layout.task(name).store(split) for name in sharing if split in ("train", "valid")]
    made.append(layout.task(task).text("raw", split, tasks[task].languages.target))
    return any(Path(prefixed(path)).exists() for path in made)


def extracted_files(task, split, pairs):
    """The files of pairs of references, where downloads put them."""
    if not is_extracted(task, split):
        on_disk.tasks[task].require_files(is_made)
    return local_files(reference for pair in pairs for reference in pair)


def sources_of(wildcards):
    """The files that a split is extracted from."""
    with failures_in_one_line():
        pairs = tasks[wildcards.task].file_pairs(wildcards.split)
        return extracted_files(wildcards.task, wildcards.split, pairs)


def reference_pairs(wildcards):
    """The references of a further reference of a test set, each with its target."""
    return on_disk.tasks[wildcards.task].reference_pairs(wildcards.testset, int(wildcards.number))


def references_to_extract(wildcards):
    """The files that a further reference of a test set is extracted from."""
    with failures_in_one_line():
        task, testset, number = wildcards.task, wildcards.testset, int(wildcards.number)
        pairs = tasks[task].reference_pairs(testset, number)
        return extracted_files(task, testset, pairs)


def papers_of(wildcards):
    """The tables of papers that a task's text is made from."""
    return local_files(tasks[wildcards.task].titles.files)


def hold_out(wildcards):
    """Which training pairs a split takes, where validation is held out from training."""
    part = tasks[wildcards.task].hold_out_of(wildcards.split)
    return None if part is None else (part.every, part.held)
