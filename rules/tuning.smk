"""From a development set's n-best list to the length penalty that scores best, and its curve."""


rule tune_length_penalty:
    input:
        list="<model>/{run}/{testset}.{decoding}.nbest.zst",
        raw=lambda w: test_side(w, "raw", "target"),
        tokenized=lambda w: test_side(w, "tok", "target"),
    output:
        tsv="<model>/{run}/{testset}.{decoding}.length_penalty.tsv",
        json="<model>/{run}/{testset}.{decoding}.length_penalty.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.length_penalty.log",
    conda:
        "../envs/score.yaml"
    params:
        facts=lambda w: flow.model_facts(w.task, tasks[w.task]),
        scale=options["scale"],
        stand_in=scale["stand_in"],
        code=script_code("tune_length_penalty.py"),
    script:
        "../workflow/scripts/tune_length_penalty.py"


rule length_penalty_curve:
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
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.length_penalty_curve.log",
    conda:
        "../envs/plot.yaml"
    params:
        code=script_code("length_penalty_curve.py"),
    script:
        "../workflow/scripts/length_penalty_curve.py"
