"""The input functions of rules/released.smk."""


def released_files(wildcards):
    """The files of the task's released model, where downloads put them."""
    return local_files(tasks[wildcards.task].released_references())
