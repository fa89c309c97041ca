"""The input functions of rules/decoding.smk."""


def tuned_penalty(wildcards):
    """Where the tuned length penalty stands; no file where the number is stated."""
    development = scale.development_set(
        tasks[wildcards.task], settings.decodings[wildcards.decoding]
    )
    if development is None:
        return []
    folder, name = layout.task(wildcards.task), wildcards.decoding
    return [
        folder.translations(
            wildcards.model, wildcards.run, development, name, "length_penalty.json"
        )
    ]


def timing_threads(wildcards):
    """CPU threads of a timing: all that there are, so that no other job runs beside it here.

    A cluster's job has as many as any decoding: how many its node has is not known when it is
    submitted, and on the node Slurm would refuse a job step with more than were asked for.
    """
    if workflow.non_local_exec or workflow.remote_exec:
        return threads(wildcards)
    return options.cores or workflow.resource_settings.cores
