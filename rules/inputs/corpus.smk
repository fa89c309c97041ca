"""The input functions of rules/corpus.smk."""


def sources_of(wildcards):
    """The files that a split is extracted from, where downloads put them."""
    with failures_in_one_line():
        pairs = tasks[wildcards.task].file_pairs(wildcards.split)
    return local_files(reference for pair in pairs for reference in pair)


def hold_out(wildcards):
    """Which training pairs a split takes, where validation is held out from training."""
    part = tasks[wildcards.task].hold_out_of(wildcards.split)
    return None if part is None else (part.every, part.held)
