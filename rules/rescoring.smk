"""Rescoring: another model chooses from an n-best list (Sutskever et al., section 3.2).

The param `metadata` has the task's name and its keys `languages` and `preparation.test`, which
decide how tokens become text. The ways to choose and the length penalties to try are in
convs2s.scoring.reranking.
"""


rule list_n_best:
    """List a model's best translations of each sentence in a test set."""
    input:
        models=models_of_run,
        source=of_text("<results>/{task}/corpus/raw/{testset}.source.zst"),
        tuned=lambda w: tuned_penalty(w, listed=w.testset),
        changed=changed("list_n_best"),
    output:
        "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.nbest.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.nbest.tsv"
    group:
        "translate"
    conda:
        environment("train")
    threads: lambda w: options.cores or settings.models[w.model].training.threads
    resources:
        mem_mb=memory_of_models,
        runtime=minutes(60),
        gpu=min(1, GPUS),
        translations=1,
    params:
        code=code("list_n_best"),
        decoding=decoding,
    script:
        "../workflow/scripts/list_n_best.py"


rule score_n_best:
    """Score a model's n-best list by another model."""
    input:
        # `<results>/{task}/models/{scorer}/seed1/model.safetensors`, or those of an ensemble
        models=lambda w: layout.task(w.task).models(w.scorer, w.scorer_run),
        source=of_text("<results>/{task}/corpus/tok/{testset}.source.zst"),
        n_best="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.nbest.zst",
        tuned=lambda w: tuned_penalty(w, listed=w.testset),
        changed=changed("score_n_best"),
    output:
        "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.tsv"
    group:
        "translate"
    conda:
        environment("train")
    threads: lambda w: options.cores or settings.models[w.scorer].training.threads
    resources:
        mem_mb=memory_of_models,
        runtime=minutes(60),
        gpu=min(1, GPUS),
        translations=1,
    params:
        code=code("score_n_best"),
        decoding=decoding,
    script:
        "../workflow/scripts/score_n_best.py"


rule rescore_n_best:
    """Choose from a model's n-best list by another model's scores, and score the choice."""
    input:
        n_best="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.scored-by-{scorer}-{scorer_run}.nbest.zst",
        raw=of_text("<results>/{task}/corpus/raw/{testset}.target.zst"),
        tokenized=of_text("<results>/{task}/corpus/tok/{testset}.target.zst"),
        changed=changed("rescore_n_best"),
    output:
        translations="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.txt",
        text="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.bleu.txt",
        json="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.rescored-by-{scorer}-{scorer_run}.tsv"
    group:
        "translate"
    conda:
        environment("score")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(20),
    params:
        code=code("rescore_n_best"),
        tokenize=lambda w: tasks[w.task].bleu_tokenize,
        stand_in=scale.stand_in,
        metadata=lambda w: tasks[w.task].model_metadata().model_dump(mode="json"),
        scale=options.scale,
    script:
        "../workflow/scripts/rescore_n_best.py"


rule score_baseline_list:
    """Score another system's n-best list by a model."""
    input:
        models=models_of_run,
        source=of_text("<results>/{task}/corpus/tok/{testset}.source.zst"),
        n_best=baseline_list,
        changed=changed("score_baseline_list", baseline_list),
    output:
        "<results>/{task}/models/{model}/{run}/{testset}.scored.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.scored.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.scored.tsv"
    group:
        "translate"
    conda:
        environment("train")
    threads: lambda w: options.cores or settings.models[w.model].training.threads
    resources:
        mem_mb=memory_of_models,
        runtime=minutes(60),
        gpu=min(1, GPUS),
        translations=1,
    params:
        code=code("score_n_best", "score_baseline_list"),
        # The decoding of the scale's `n_best`. For a user's file it has no length penalty.
        decoding=settings.decoding_of_list(),
    script:
        "../workflow/scripts/score_n_best.py"


rule rescore_baseline_list:
    """Choose from another system's n-best list by a model's scores, and score the choice."""
    input:
        n_best="<results>/{task}/models/{model}/{run}/{testset}.scored.nbest.zst",
        raw=of_text("<results>/{task}/corpus/raw/{testset}.target.zst"),
        tokenized=of_text("<results>/{task}/corpus/tok/{testset}.target.zst"),
        changed=changed("rescore_baseline_list"),
    output:
        translations="<results>/{task}/models/{model}/{run}/{testset}.rescored.txt",
        text="<results>/{task}/models/{model}/{run}/{testset}.rescored.bleu.txt",
        json="<results>/{task}/models/{model}/{run}/{testset}.rescored.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.rescored.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.rescored.tsv"
    group:
        "translate"
    conda:
        environment("score")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(20),
    params:
        code=code("rescore_n_best", "rescore_baseline_list"),
        tokenize=lambda w: tasks[w.task].bleu_tokenize,
        stand_in=scale.stand_in,
        metadata=lambda w: tasks[w.task].model_metadata().model_dump(mode="json"),
        baseline=lambda w: str(scale.n_best or tasks[w.task].n_best_of(w.testset)),
        scale=options.scale,
    script:
        "../workflow/scripts/rescore_n_best.py"


rule tune_length_penalty:
    """Find the length penalty with the best BLEU on an n-best list."""
    input:
        n_best="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.nbest.zst",
        raw=of_text("<results>/{task}/corpus/raw/{testset}.target.zst"),
        tokenized=of_text("<results>/{task}/corpus/tok/{testset}.target.zst"),
        changed=changed("tune_length_penalty"),
    output:
        tsv="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.length_penalty.tsv",
        json="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.length_penalty.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.length_penalty.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.length_penalty.tsv"
    group:
        "translate"
    conda:
        environment("score")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(20),
    params:
        scale=options.scale,
        stand_in=scale.stand_in,
        code=code("tune_length_penalty"),
        tokenize=lambda w: tasks[w.task].bleu_tokenize,
        metadata=lambda w: tasks[w.task].model_metadata().model_dump(mode="json"),
    script:
        "../workflow/scripts/tune_length_penalty.py"


rule plot_length_penalty:
    """Plot BLEU by the length penalty."""
    input:
        table="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.length_penalty.tsv",
        tuning="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.length_penalty.json",
        changed=changed("plot_length_penalty"),
    output:
        report(
            "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.length_penalty.svg",
            caption="../workflow/report/length_penalty.rst",
            category="{task}",
            labels={"model": "{model}", "run": "{run}", "plot": "length penalty"},
        ),
        "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.length_penalty.png",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.plot_length_penalty.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.plot_length_penalty.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("plot_length_penalty"),
        heading=settings.heading,
    script:
        "../workflow/scripts/plot_length_penalty.py"
