"""From translations to scores, to a task's headline over several runs, and to comparisons."""


rule evaluate_bleu:
    input:
        translations="<model>/{run}/{testset}.{decoding}.jsonl",
        models=models,
        tuned=tuned_penalty,
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        "<model>/{run}/{testset}.{decoding}.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.bleu.log",
    conda:
        "../envs/score.yaml"
    params:
        run=run_header,
        decoding=decoding,
        metrics=lambda w: code_of_extensions("METRICS", tasks[w.task].metrics),
    script:
        "../workflow/scripts/evaluate_bleu.py"


rule measure_perplexity:
    input:
        models=models,
        source=test_side("tok", "source"),
        target=test_side("tok", "target"),
    output:
        "<model>/{run}/{testset}.perplexity.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.perplexity.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        **ON_DEVICE,
    params:
        run=run_header,
    script:
        "../workflow/scripts/measure_perplexity.py"


rule evaluate_rouge:
    input:
        translations="<model>/{run}/{testset}.{decoding}.jsonl",
        models=models,
        tuned=tuned_penalty,
        references=references_of,
        exceptions=options.rouge_exceptions or [],
    output:
        "<model>/{run}/{testset}.{decoding}.rouge.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.rouge.log",
    conda:
        "../envs/score.yaml"
    params:
        run=run_header,
        decoding=decoding,
        rouge=lambda w: tasks[w.task].rouge_settings(w.testset).model_dump(mode="json"),
    script:
        "../workflow/scripts/evaluate_rouge.py"


rule summarize_runs:
    input:
        evaluations=headline_scores,
    output:
        multiext("<results>/{task}/{metric}", text=".txt", json=".json"),
    log:
        "<logs>/{task}/summarize_{metric}.log",
    conda:
        "../envs/score.yaml"
    params:
        tests=lambda w: list(tasks[w.task].headline.tests),
        runs=lambda w: tasks[w.task].headline_runs(),
        header=lambda w: {
            "task": w.task,
            **tasks[w.task].headline.model_dump(include={"model", "decoding"}),
            "scale": options.scale,
        },
        stand_in=scale.stand_in,
    script:
        "../workflow/scripts/summarize_runs.py"


rule compare_models:
    input:
        baseline=runs_to_compare("baseline"),
        system=runs_to_compare("system"),
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        text="<results>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.txt",
        json="<results>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.json",
    log:
        "<logs>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.log",
    conda:
        "../envs/score.yaml"
    params:
        **STAND_IN,
        decoding=decoding,
    script:
        "../workflow/scripts/compare_models.py"


rule write_examples:
    input:
        translations=lambda w: headline_files(w.task, "jsonl")[0],
        reference=lambda w: text_folder(w).text("raw", tasks[w.task].headline.tests[0], "target"),
    output:
        "<results>/{task}/examples.txt",
    log:
        "<logs>/{task}/write_examples.log",
    conda:
        "../envs/score.yaml"
    script:
        "../workflow/scripts/write_examples.py"
