"""Scores of translations, a task's headline score over several runs, and comparisons of models.

The checksums of the models and of the tuned length penalty are recorded with a score, so the rules
have them as inputs.
"""


rule evaluate_bleu:
    """Score translations by BLEU and the task's further metrics."""
    input:
        translations="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.jsonl",
        models=models_of_run,
        tuned=tuned_penalty,
        raw=of_text("<results>/{task}/corpus/raw/{testset}.target.zst"),
        tokenized=of_text("<results>/{task}/corpus/tok/{testset}.target.zst"),
        counts=lambda w: plan.dataset_counts(w.task),
        changed=changed("evaluate_bleu"),
    output:
        "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.bleu.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.bleu.tsv"
    group:
        "translate"
    conda:
        environment("score")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(10),
    params:
        code=code("evaluate_bleu"),
        run=run_header,
        decoding=decoding,
        tokenize=lambda w: tasks[w.task].bleu_tokenize,
        metrics=lambda w: digests_of_extensions("METRICS", tasks[w.task].metrics),
    script:
        "../workflow/scripts/evaluate_bleu.py"


rule measure_perplexity:
    """Measure a model's perplexity on a test set."""
    input:
        models=models_of_run,
        source=of_text("<results>/{task}/corpus/tok/{testset}.source.zst"),
        target=of_text("<results>/{task}/corpus/tok/{testset}.target.zst"),
        changed=changed("measure_perplexity"),
    output:
        "<results>/{task}/models/{model}/{run}/{testset}.perplexity.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.perplexity.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.perplexity.tsv"
    group:
        "translate"
    conda:
        environment("train")
    threads: lambda w: options.cores or settings.models[w.model].training.threads
    resources:
        mem_mb=memory_of_models,
        runtime=minutes(30),
        gpu=min(1, GPUS),
        translations=1,
    params:
        code=code("measure_perplexity"),
        run=run_header,
    script:
        "../workflow/scripts/measure_perplexity.py"


rule evaluate_rouge:
    """Score summaries by ROUGE."""
    input:
        translations="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.jsonl",
        models=models_of_run,
        tuned=tuned_penalty,
        # `<results>/{task}/corpus/raw/duc2004.target.zst`, `duc2004.reference1.target.zst`, ...
        references=lambda w: plan.references(w.task, w.testset),
        exceptions=lambda w: options.rouge_exceptions or [],
        counts=lambda w: plan.dataset_counts(w.task),
        changed=changed("evaluate_rouge", lambda w: options.rouge_exceptions or []),
    output:
        "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.rouge.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.rouge.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.rouge.tsv"
    group:
        "translate"
    conda:
        environment("score")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(20),
    params:
        code=code("evaluate_rouge"),
        run=run_header,
        decoding=decoding,
        rouge=lambda w: tasks[w.task].rouge_settings(w.testset).model_dump(mode="json"),
    script:
        "../workflow/scripts/evaluate_rouge.py"


rule summarize_runs:
    """Write a task's headline score, the mean over its runs, as text, as JSON and as a page."""
    input:
        # `<results>/{task}/models/{model}/seed1/test.beam5.bleu.json` of each run and test set
        scores=lambda w: in_one_line(plan.headline_scores)(w.task, w.metric),
        counts=lambda w: plan.dataset_counts(w.task),
        changed=changed("summarize_runs"),
    output:
        text="<results>/{task}/{metric}.txt",
        json="<results>/{task}/{metric}.json",
        page=report(
            "<results>/{task}/{metric}.html",
            caption="../workflow/report/page.rst",
            category="{task}",
            labels={"result": "score"},
        ),
    log:
        "<logs>/{task}/summarize_{metric}.log",
    benchmark:
        "<benchmarks>/{task}/summarize_{metric}.tsv"
    localrule: True
    conda:
        environment("score")
    params:
        code=code("summarize_runs"),
        headline=lambda w: tasks[w.task].headline.model_dump(mode="json"),
        scale=options.scale,
        stand_in=scale.stand_in,
    script:
        "../workflow/scripts/summarize_runs.py"


rule compare_models:
    """Compare two models, paired by the seeds of the task's headline."""
    input:
        # `<results>/{task}/models/{baseline}/seed1/{testset}.{decoding}.jsonl` for each seed of the
        # headline, and the same for {system}.
        baseline=lambda w: plan.translations_of_seeds(w.task, w.baseline, w.testset, w.decoding),
        system=lambda w: plan.translations_of_seeds(w.task, w.system, w.testset, w.decoding),
        raw=of_text("<results>/{task}/corpus/raw/{testset}.target.zst"),
        tokenized=of_text("<results>/{task}/corpus/tok/{testset}.target.zst"),
        changed=changed("compare_models"),
    output:
        text="<results>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.txt",
        json="<results>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.json",
    log:
        "<logs>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.log",
    benchmark:
        "<benchmarks>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.tsv"
    conda:
        environment("score")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(60),
    params:
        scale=options.scale,
        stand_in=scale.stand_in,
        code=code("compare_models"),
        decoding=decoding,
        tokenize=lambda w: tasks[w.task].bleu_tokenize,
    script:
        "../workflow/scripts/compare_models.py"


rule write_examples:
    """Write a few translations with their sources and references."""
    input:
        # `<results>/{task}/models/{model}/seed1/test.beam5.jsonl` of the headline's first run and
        # test set. It contains the sources.
        translations=lambda w: plan.headline_files(w.task, "jsonl")[0],
        reference=lambda w: of_text(
            f"<results>/{{task}}/corpus/raw/{tasks[w.task].headline.tests[0]}.target.zst"
        )(w),
        changed=changed("write_examples"),
    output:
        "<results>/{task}/examples.txt",
    log:
        "<logs>/{task}/write_examples.log",
    benchmark:
        "<benchmarks>/{task}/write_examples.tsv"
    localrule: True
    conda:
        environment("score")
    params:
        code=code("write_examples"),
    script:
        "../workflow/scripts/write_examples.py"
