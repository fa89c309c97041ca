"""The input functions of rules/scoring.smk."""


def runs_to_compare(side):
    """An input function: the translations of a model, those of the seeds of the task's headline."""

    def paths(wildcards):
        seeds = [f"seed{seed}" for seed in tasks[wildcards.task].headline.seeds]
        file = f"{wildcards.testset}.{wildcards.decoding}.jsonl"
        return layout.run_files(wildcards.task, wildcards[side], seeds, file)

    return paths


def headline_header(wildcards):
    """What a task's report begins with."""
    headline = tasks[wildcards.task].headline
    header = {"model": headline.model, "decoding": headline.decoding, "scale": options.scale}
    return {"task": wildcards.task, **header}
