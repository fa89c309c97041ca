"""What a training and its attention look like."""


def plots_of(task):
    """The learning curves of a task's headline trainings and the attention maps of its first run."""
    translations = headline_files(task, "jsonl")
    runs = [] if tasks[task].released else sorted({str(Path(p).parent) for p in translations})
    first = translations[0].removesuffix(".jsonl")
    kind = settings.models[tasks[task].headline.model].architecture.kind
    lines = [] if kind == "lstm" else options.plots.sentences  # an LSTM has no attention
    attention = [f"{first}.attention{line}" for line in lines]
    return [f"{path}.svg" for path in [*(f"{run}/curve" for run in runs), *attention]]


rule plot_learning_curve:
    input:
        history="<model>/{run}/history.jsonl",
    output:
        report(
            "<model>/{run}/curve.svg",
            caption="../workflow/report/curve.rst",
            category="{task}",
            labels={"model": "{model}", "run": "{run}", "plot": "learning curve"},
        ),
        "<model>/{run}/curve.png",
    log:
        "<logs>/{task}/{model}/{run}/curve.log",
    conda:
        "../envs/plot.yaml"
    params:
        code=script_code("plot_learning_curve.py"),
    script:
        "../workflow/scripts/plot_learning_curve.py"


rule plot_attention:
    input:
        model="<model>/{run}/model.safetensors",
        translations="<model>/{run}/{testset}.{decoding}.jsonl",
    output:
        report(
            "<model>/{run}/{testset}.{decoding}.attention{line}.svg",
            caption="../workflow/report/attention.rst",
            category="{task}",
            labels={"model": "{model}", "run": "{run}", "plot": "attention, sentence {line}"},
        ),
        "<model>/{run}/{testset}.{decoding}.attention{line}.png",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.attention{line}.log",
    wildcard_constraints:
        line="[0-9]+",
    conda:
        "../envs/train.yaml"
    params:
        code=script_code("plot_attention.py"),
    script:
        "../workflow/scripts/plot_attention.py"
