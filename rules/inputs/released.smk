"""The input functions of rules/released.smk."""


def released_files(wildcards):
    """The files of the task's released model, where downloads put them."""
    return local_files(tasks[wildcards.task].released_references())


def released_references(wildcards):
    """The section `released` of a task."""
    stated = tasks[wildcards.task].released.model_dump(mode="json")
    return {key: one and prefixed_reference(one) for key, one in stated.items()}
