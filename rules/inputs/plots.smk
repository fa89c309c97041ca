"""The input functions of rules/plots.smk."""

from convs2s.config.runs import members


def plots_of(task):
    """The learning curves of a task's headline trainings and the attention maps of its first run."""
    translations = headline_files(task, "jsonl")
    runs = [] if tasks[task].released else sorted({str(Path(p).parent) for p in translations})
    first = translations[0].removesuffix(".jsonl")
    kind = settings.models[tasks[task].headline.model].architecture.kind
    lines = [] if kind == "lstm" else options.plots.sentences  # an LSTM has no attention
    attention = [f"{first}.attention{line}" for line in lines]
    return [f"{path}.svg" for path in [*(f"{run}/curve" for run in runs), *attention]]


def runs_of(cells):
    """The folders of the trainings that some cells of the paper's tables rest on."""
    trained = [(c.task, c.model, run) for c in cells for name in c.runs for run in members(name)]
    return [layout.task(task).run(model, run) for task, model, run in dict.fromkeys(trained)]


def has_model(task, model, run):
    """Return whether a model of this machine is there."""
    return Path(prefixed(layout.task(task).model(model, run))).exists()


def attention_of_paper():
    """The attention maps of the runs that figure 3 names, of the sentences that `plots` names.

    Where a published ledger gives the tables, only those whose model is there: no ledger holds maps.
    """
    rows = (row.comparison("figure3", ()) for row in settings.paper["figure3"].rows)
    runs = [one for one in rows if one and scale.model_for(one.model)]
    return [
        layout.task(scale.task_for(one.task)).translations(
            scale.model_for(one.model),
            run,
            scale.testset_for(one.testset),
            one.decoding,
            f"attention{line}.svg",
        )
        for one in runs
        for run in one.runs
        if not options.published
        or has_model(scale.task_for(one.task), scale.model_for(one.model), run)
        for line in options.plots.sentences
    ]
