"""From translations to scores, to a task's headline over several runs, and to comparisons."""


rule evaluate_bleu:
    input:
        translations="<model>/{run}/{testset}.{decoding}.jsonl",
        models=models,
        tuned=tuned,
        raw=lambda w: test_side(w, "raw", "target"),
        tokenized=lambda w: test_side(w, "tok", "target"),
    output:
        "<model>/{run}/{testset}.{decoding}.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.bleu.log",
    conda:
        "../envs/score.yaml"
    params:
        facts=run_facts,
        code=script_code("evaluate_bleu.py"),
    script:
        "../workflow/scripts/evaluate_bleu.py"


rule headline:
    input:
        lambda w: headline_files(w.task, "bleu.json"),
    output:
        text=report(
            "<results>/{task}/bleu.txt",
            caption="../workflow/report/bleu.rst",
            category="{task}",
        ),
        json="<results>/{task}/bleu.json",
    log:
        "<logs>/{task}/headline.log",
    conda:
        "../envs/score.yaml"
    params:
        headline=lambda w: tasks[w.task]["headline"],
        runs=lambda w: flow.headline_runs(tasks[w.task]),
        scale=options["scale"],
        stand_in=scale["stand_in"],
        code=script_code("headline.py"),
    script:
        "../workflow/scripts/headline.py"


rule compare_models:
    input:
        baseline=lambda w: runs_to_compare(w, w.baseline),
        system=lambda w: runs_to_compare(w, w.system),
        raw=lambda w: test_side(w, "raw", "target"),
        tokenized=lambda w: test_side(w, "tok", "target"),
    output:
        text="<results>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.txt",
        json="<results>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.json",
    log:
        "<logs>/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.log",
    conda:
        "../envs/score.yaml"
    params:
        decoding=lambda w: settings.decodings[w.decoding],
        scale=options["scale"],
        stand_in=scale["stand_in"],
        code=script_code("compare_models.py"),
    script:
        "../workflow/scripts/compare_models.py"


rule examples:
    input:
        translations=lambda w: headline_files(w.task, "jsonl")[0],
        reference=lambda w: text_path(
            w, f"corpus/raw/{tasks[w.task]['headline']['tests'][0]}.{languages_of(w)[1]}.zst"
        ),
    output:
        "<results>/{task}/examples.txt",
    log:
        "<logs>/{task}/examples.log",
    conda:
        "../envs/score.yaml"
    params:
        code=script_code("examples.py"),
    script:
        "../workflow/scripts/examples.py"
