"""The input functions of rules/rescoring.smk."""


def scorers(wildcards):
    """The model files of the run that rescores another one's n-best list."""
    return layout.task(wildcards.task).models(wildcards.scorer, wildcards.scorer_run)


def penalty_of_list(wildcards):
    """The tuned length penalty; the list that the tuning goes by comes before it."""
    development = scale.development_set(
        tasks[wildcards.task], settings.decodings[wildcards.decoding]
    )
    return [] if wildcards.testset == development else tuned_penalty(wildcards)


def header_of_list(wildcards):
    """What a report on the choice from a model's list begins with."""
    return {
        "task": wildcards.task,
        "baseline": f"{wildcards.model} {wildcards.run}",
        "decoding": wildcards.decoding,
        "scorer": f"{wildcards.scorer} {wildcards.scorer_run}",
        "scale": options.scale,
    }


def baseline_list(wildcards):
    """Another system's n-best list of a test set: the user's file, or what stands in for it."""
    own = scale.n_best
    if own is not None:
        folder, file = layout.task(wildcards.task), (wildcards.testset, own.decoding, "nbest.zst")
        return folder.translations(own.model, own.run, *file)
    with failures_in_one_line():
        return tasks[wildcards.task].n_best_of(wildcards.testset)


def scale_of_list(wildcards):
    """The settings whose length penalty the list's scores have; another system's are sums."""
    if scale.n_best is None:
        return {"length_penalty": 0.0}
    return settings.decodings[scale.n_best.decoding].model_dump(mode="json")


def header_of_baseline_list(wildcards):
    """What a report on the choice from another system's list begins with."""
    listed = scale.n_best or tasks[wildcards.task].n_best_of(wildcards.testset)
    return {
        "task": wildcards.task,
        "baseline": str(listed),
        "scorer": f"{wildcards.model} {wildcards.run}",
        "scale": options.scale,
    }
