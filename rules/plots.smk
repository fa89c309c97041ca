"""What a training and its attention look like."""


rule plot_learning_curve:
    input:
        history="<model>/{run}/history.jsonl",
    output:
        report("<model>/{run}/curve.svg", **plot_in_report("curve", "learning curve")),
        "<model>/{run}/curve.png",
    log:
        "<logs>/{task}/{model}/{run}/curve.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/curve.tsv"
    conda:
        "../envs/plot.yaml"
    params:
        heading=heading_of_plot,
    script:
        "../workflow/scripts/plot_learning_curve.py"


rule plot_attention:
    input:
        model="<model>/{run}/model.safetensors",
        translations="<model>/{run}/{testset}.{decoding}.jsonl",
    output:
        report(
            "<model>/{run}/{testset}.{decoding}.attention{line}.svg",
            **plot_in_report("attention", "attention, sentence {line}"),
        ),
        "<model>/{run}/{testset}.{decoding}.attention{line}.png",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.attention{line}.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.attention{line}.tsv"
    wildcard_constraints:
        line="[0-9]+",
    conda:
        "../envs/train.yaml"
    params:
        heading=heading_of_plot,
    script:
        "../workflow/scripts/plot_attention.py"
