"""From a test set's n-best list to another model's choice from it (Sutskever et al., section 3.2)."""

RESCORED_FILES = {"translations": ".txt", "text": ".bleu.txt", "json": ".bleu.json"}


rule list_n_best:
    input:
        models=models,
        source=test_side("raw", "source"),
        tuned=penalty_of_list,
    output:
        "<model>/{run}/{testset}.{decoding}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.nbest.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        **ON_DEVICE,
    params:
        decoding=decoding,
    script:
        "../workflow/scripts/list_n_best.py"


rule score_n_best:
    input:
        models=lambda w: layout.task(w.task).models(w.scorer, w.scorer_run),
        source=test_side("tok", "source"),
        n_best="<model>/{run}/{testset}.{decoding}.nbest.zst",
        tuned=penalty_of_list,
    output:
        "<model>/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        **ON_DEVICE,
    params:
        decoding=decoding,
    script:
        "../workflow/scripts/score_n_best.py"


rule rescore_n_best:
    input:
        n_best="<model>/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        multiext(
            "<model>/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}",
            **RESCORED_FILES,
        ),
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.log",
    conda:
        "../envs/score.yaml"
    params:
        stand_in=scale.stand_in,
        metadata=model_metadata,
        header=header_of_choice,
    script:
        "../workflow/scripts/rescore_n_best.py"


use rule score_n_best as score_baseline_list with:
    input:
        models=models,
        source=test_side("tok", "source"),
        n_best=baseline_list,
        tuned=[],
    output:
        "<model>/{run}/{testset}.scored.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.scored.log",
    params:
        # Another system's scores are sums.
        decoding=lambda w: (
            settings.decodings[scale.n_best.decoding].model_dump(mode="json")
            if scale.n_best
            else {"length_penalty": 0.0}
        ),


use rule rescore_n_best as rescore_baseline_list with:
    input:
        n_best="<model>/{run}/{testset}.scored.nbest.zst",
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        multiext("<model>/{run}/{testset}.rescored", **RESCORED_FILES),
    log:
        "<logs>/{task}/{model}/{run}/{testset}.rescored.log",


rule tune_length_penalty:
    input:
        n_best="<model>/{run}/{testset}.{decoding}.nbest.zst",
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        multiext("<model>/{run}/{testset}.{decoding}.length_penalty", tsv=".tsv", json=".json"),
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.length_penalty.log",
    conda:
        "../envs/score.yaml"
    params:
        **STAND_IN,
        metadata=model_metadata,
    script:
        "../workflow/scripts/tune_length_penalty.py"


rule plot_length_penalty:
    input:
        multiext("<model>/{run}/{testset}.{decoding}.length_penalty", table=".tsv", tuning=".json"),
    output:
        reported_plot("{testset}.{decoding}.length_penalty", "length_penalty", "length penalty"),
        "<model>/{run}/{testset}.{decoding}.length_penalty.png",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.plot_length_penalty.log",
    conda:
        "../envs/plot.yaml"
    params:
        heading=heading_of_plot,
    script:
        "../workflow/scripts/plot_length_penalty.py"
