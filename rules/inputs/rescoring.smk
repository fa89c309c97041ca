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
