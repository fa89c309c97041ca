"""From a test set's n-best list to another model's choice from it (Sutskever et al., section 3.7)."""


rule list_n_best:
    input:
        models=models,
        text=lambda w: test_side(w, "raw", "source"),
        tuned=tuned_for_list,
    output:
        "<model>/{run}/{testset}.{decoding}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.nbest.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        gpu=0 if options["device"] == "cpu" else 1,
        device=options["device"],
        torch_threads=threads,
    params:
        settings=lambda w: settings.decodings[w.decoding],
        code=script_code("list_n_best.py"),
    script:
        "../workflow/scripts/list_n_best.py"


rule score_n_best:
    input:
        models=scorers,
        source=lambda w: test_side(w, "tok", "source"),
        list="<model>/{run}/{testset}.{decoding}.nbest.zst",
        tuned=tuned_for_list,
    output:
        "<model>/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        gpu=0 if options["device"] == "cpu" else 1,
        device=options["device"],
        torch_threads=threads,
    params:
        settings=lambda w: settings.decodings[w.decoding],
        code=script_code("score_n_best.py"),
    script:
        "../workflow/scripts/score_n_best.py"


rule rescore:
    input:
        list="<model>/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
        raw=lambda w: test_side(w, "raw", "target"),
        tokenized=lambda w: test_side(w, "tok", "target"),
    output:
        translations="<model>/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.txt",
        text="<model>/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.bleu.txt",
        json="<model>/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.log",
    conda:
        "../envs/score.yaml"
    params:
        facts=lambda w: flow.model_facts(w.task, tasks[w.task]),
        scale=options["scale"],
        stand_in=scale["stand_in"],
        code=script_code("rescore.py"),
    script:
        "../workflow/scripts/rescore.py"
