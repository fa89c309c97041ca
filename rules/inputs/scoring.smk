"""The input functions of rules/scoring.smk."""


def runs_to_compare(side):
    """An input function: the translations of a model, those of the seeds of the task's headline."""

    def paths(wildcards):
        seeds = [f"seed{seed}" for seed in tasks[wildcards.task].headline.seeds]
        file = f"{wildcards.testset}.{wildcards.decoding}.jsonl"
        return layout.run_files(wildcards.task, wildcards[side], seeds, file)

    return paths


def references_of(wildcards):
    """All references of the wildcards' test set as they were published: the target side first."""
    first = test_side("raw", "target")(wildcards)
    folder, testset = text_folder(wildcards), wildcards.testset
    further = [
        folder.text("raw", f"{testset}.reference{number}", languages(wildcards)[1])
        for number in range(1, tasks[wildcards.task].reference_count(testset))
    ]
    return [first, *further]


def headline_scores(metric):
    """An input function: the scores that a task's report in this metric rests on."""

    def paths(wildcards):
        with failures_in_one_line():
            tasks[wildcards.task].check_metric(metric)
        return headline_files(wildcards.task, f"{metric}.json")

    return paths


def headline_header(wildcards):
    """What a task's report begins with."""
    headline = tasks[wildcards.task].headline
    header = {"model": headline.model, "decoding": headline.decoding, "scale": options.scale}
    return {"task": wildcards.task, **header}
