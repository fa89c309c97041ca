"""The paper's figures: BLEU by the number of layers, and attention on a sentence."""


include: "inputs/paper_figures.smk"


rule plot_bleu_by_layers:
    input:
        scores=wanted_scores,
        published=PUBLISHED_LEDGER,
    output:
        report("<results>/paper/{table}.svg", **in_report("bleu_by_layers", "Figure 2")),
        multiext("<results>/paper/{table}", ".pdf", ".points.csv"),
    log:
        "<logs>/paper/plot_bleu_by_layers.{table}.log",
    benchmark:
        "<benchmarks>/paper/plot_bleu_by_layers.{table}.tsv"
    wildcard_constraints:
        table=LAYERS_FIGURE,
    conda:
        "../envs/plot.yaml"
    resources:
        workflow_folder=str(ROOT),
    params:
        shown=what_is_shown,
        code=script_code("plot_bleu_by_layers.py"),
    script:
        "../workflow/scripts/plot_bleu_by_layers.py"


rule attend_to_example:
    input:
        model="<model>/{run}/model.safetensors",
        text=text_of_example,
        tuned=tuned_penalty,
    output:
        "<model>/{run}/{testset}.{decoding}.example.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.example.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.example.tsv"
    wildcard_constraints:
        run="seed[0-9]+",
    conda:
        "../envs/train.yaml"
    params:
        header=run_header,
        stand_in=scale.stand_in,
        sentence=None if scale.example_line else settings.paper[EXAMPLE_FIGURE].example_source,
        line=scale.example_line,
        decoding=decoding,
        code=script_code("attend_to_example.py"),
    script:
        "../workflow/scripts/attend_to_example.py"


rule plot_example:
    input:
        lambda w: examples_shown(),
    output:
        report(f"<results>/paper/{EXAMPLE_FIGURE}.svg", **in_report("example", "Figure 3")),
        f"<results>/paper/{EXAMPLE_FIGURE}.pdf",
    log:
        "<logs>/paper/plot_example.log",
    benchmark:
        "<benchmarks>/paper/plot_example.tsv"
    conda:
        "../envs/plot.yaml"
    params:
        code=script_code("plot_example.py"),
    script:
        "../workflow/scripts/plot_example.py"
