"""From a development set's n-best list to the length penalty that scores best, and its curve."""


rule tune_length_penalty:
    input:
        n_best="<model>/{run}/{testset}.{decoding}.nbest.zst",
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        tsv="<model>/{run}/{testset}.{decoding}.length_penalty.tsv",
        json="<model>/{run}/{testset}.{decoding}.length_penalty.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.length_penalty.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.length_penalty.tsv"
    conda:
        "../envs/score.yaml"
    params:
        **STAND_IN,
        metadata=model_metadata,
        code=script_code("tune_length_penalty.py"),
    script:
        "../workflow/scripts/tune_length_penalty.py"


rule plot_length_penalty:
    input:
        table="<model>/{run}/{testset}.{decoding}.length_penalty.tsv",
        tuning="<model>/{run}/{testset}.{decoding}.length_penalty.json",
    output:
        report(
            "<model>/{run}/{testset}.{decoding}.length_penalty.svg",
            caption="../workflow/report/length_penalty.rst",
            category="{task}",
            labels={"model": "{model}", "run": "{run}", "plot": "length penalty"},
        ),
        "<model>/{run}/{testset}.{decoding}.length_penalty.png",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.plot_length_penalty.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.plot_length_penalty.tsv"
    conda:
        "../envs/plot.yaml"
    params:
        heading=heading_of_plot,
        code=script_code("plot_length_penalty.py"),
    script:
        "../workflow/scripts/plot_length_penalty.py"
