"""From a test set's n-best list to another model's choice from it (Sutskever et al., section 3.7)."""


include: "inputs/rescoring.smk"


rule list_n_best:
    input:
        models=models,
        source=test_side("raw", "source"),
        tuned=penalty_of_list,
    output:
        "<model>/{run}/{testset}.{decoding}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.nbest.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.nbest.tsv"
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        gpu=0 if options.device == "cpu" else 1,
        device=options.device,
        torch_threads=threads,
    params:
        decoding=decoding,
        code=script_code("list_n_best.py"),
    script:
        "../workflow/scripts/list_n_best.py"


rule score_n_best:
    input:
        models=scorers,
        source=test_side("tok", "source"),
        n_best="<model>/{run}/{testset}.{decoding}.nbest.zst",
        tuned=penalty_of_list,
    output:
        "<model>/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.tsv"
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        gpu=0 if options.device == "cpu" else 1,
        device=options.device,
        torch_threads=threads,
    params:
        decoding=decoding,
        code=script_code("score_n_best.py"),
    script:
        "../workflow/scripts/score_n_best.py"


rule rescore_n_best:
    input:
        n_best="<model>/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        translations="<model>/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.txt",
        text="<model>/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.bleu.txt",
        json="<model>/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.tsv"
    conda:
        "../envs/score.yaml"
    params:
        stand_in=scale.stand_in,
        metadata=model_metadata,
        header=header_of_list,
        code=script_code("rescore_n_best.py"),
    script:
        "../workflow/scripts/rescore_n_best.py"
