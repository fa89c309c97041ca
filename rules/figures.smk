"""The papers' figures, and plots of a training and of its attention.

The head of paper.smk describes the functions of `plan`. Figure 2 is drawn from existing scores, as
a table is. The other figures need models, so asking for one of them makes the runs that it shows.

At a scale with `example_line`, figure 3 shows that line of the test set. Otherwise it shows the
paper's sentence, and needs no text.

The inputs of `plot_bleu_by_length` are:

- system: `<results>/{task}/models/{model}/{run}/{testset}.{decoding}.jsonl`, the translations of the
  first run in the figure's first row.
- baseline: the n-best list of another system that the task or the scale names (`n_best`), if a row
  of the figure measures `bleu_of_list` and the list exists. Otherwise no file.
- source, reference: `<results>/{task}/corpus/tok/test.source.zst` and `.target.zst`.
- vocabulary: `<results>/{task}/vocabulary/LANG.tsv` of the source language.
"""

# The plots of a run's attention, without suffix: one for each sentence of config.yaml.
ATTENTION = expand(
    "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.attention{line}",
    line=options.plots.sentences,
    allow_missing=True,
)


rule plot_bleu_by_layers:
    """Plot BLEU by the number of layers."""
    input:
        scores=lambda w: plan.scores(w.table),
        published=lambda w: [local(file) for file in plan.published],
        changed=changed("plot_bleu_by_layers"),
    output:
        report(
            "<results>/paper/{table}.svg",
            caption="../workflow/report/bleu_by_layers.rst",
            category="figures",
            labels={"figure": "Figure 2"},
        ),
        "<results>/paper/{table}.pdf",
        points="<results>/paper/{table}.points.csv",
    log:
        "<logs>/paper/plot_bleu_by_layers.{table}.log",
    benchmark:
        "<benchmarks>/paper/plot_bleu_by_layers.{table}.tsv"
    wildcard_constraints:
        table="figure2",
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("plot_bleu_by_layers"),
        shown=lambda w: plan.contents(w.table),
    script:
        "../workflow/scripts/plot_bleu_by_layers.py"


rule attend_to_example:
    """Compute the attention of a model on the paper's example sentence."""
    input:
        model="<results>/{task}/models/{model}/{run}/model.safetensors",
        # `<results>/{task}/corpus/raw/{testset}.source.zst`, or no file
        text=lambda w: plan.example_text(w.task, w.testset),
        tuned=tuned_penalty,
        changed=changed("attend_to_example"),
    output:
        "<results>/{task}/models/{model}/{run,seed[0-9]+}/{testset}.{decoding}.example.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.example.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.example.tsv"
    group:
        "translate"
    conda:
        environment("train")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(10),
        translations=1,
    params:
        code=code("attend_to_example"),
        header=run_header,
        stand_in=scale.stand_in,
        sentence=None if scale.example_line else settings.tables["figure3"].example_source,
        line=scale.example_line,
        decoding=decoding,
    script:
        "../workflow/scripts/attend_to_example.py"


rule plot_example:
    """Plot the attention of the model in the figure's first row on the paper's example sentence."""
    input:
        # `<results>/{task}/models/{model}/seed1/test.beam5.example.json`: the output of
        # attend_to_example for the first run in the figure's first row.
        lambda w: in_one_line(plan.drawn_cells)("figure3")[0].paths[0],
        changed=changed("plot_example"),
    output:
        report(
            "<results>/paper/figure3.svg",
            caption="../workflow/report/example.rst",
            category="figures",
            labels={"figure": "Figure 3"},
        ),
        "<results>/paper/figure3.pdf",
    log:
        "<logs>/paper/plot_example.log",
    benchmark:
        "<benchmarks>/paper/plot_example.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("plot_example"),
    script:
        "../workflow/scripts/plot_example.py"


rule project_phrases:
    """Project the states of phrases in a model to two dimensions."""
    input:
        model="<results>/{task}/models/{model}/{run}/model.safetensors",
        changed=changed("project_phrases"),
    output:
        "<results>/{task}/models/{model}/{run,seed[0-9]+}/phrases.{phrases}.json",
    log:
        "<logs>/{task}/{model}/{run}/phrases.{phrases}.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/phrases.{phrases}.tsv"
    group:
        "translate"
    conda:
        environment("train")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(10),
        translations=1,
    params:
        code=code("project_phrases"),
        header=lambda w: {**run_header(w), "name": w.phrases},
        stand_in=scale.stand_in,
        phrases=lambda w: settings.phrases[w.phrases].model_dump(mode="json"),
    script:
        "../workflow/scripts/project_phrases.py"


rule plot_phrase_states:
    """Plot the projected states of phrases."""
    input:
        # `<results>/{task}/models/{model}/seed1/phrases.NAME.json`: the output of project_phrases
        # for the first run in each row.
        lambda w: [cell.paths[0] for cell in in_one_line(plan.drawn_cells)("lstm_figure2")],
        changed=changed("plot_phrase_states"),
    output:
        report(
            "<results>/paper/lstm_figure2.svg",
            caption="../workflow/report/phrases.rst",
            category="figures",
            labels={"figure": "LSTM, figure 2"},
        ),
        "<results>/paper/lstm_figure2.pdf",
        points="<results>/paper/lstm_figure2.points.csv",
    log:
        "<logs>/paper/plot_phrase_states.log",
    benchmark:
        "<benchmarks>/paper/plot_phrase_states.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("plot_phrase_states"),
    script:
        "../workflow/scripts/plot_phrase_states.py"


rule plot_bleu_by_length:
    """Plot BLEU by sentence length, for the figure's first row and the baseline's list, if any."""
    input:
        # system, baseline, source, reference, vocabulary (head of this file)
        unpack(lambda w: in_one_line(plan.curves)()[0]),
        changed=changed("plot_bleu_by_length"),
    output:
        report(
            "<results>/paper/lstm_figure3.svg",
            caption="../workflow/report/bleu_by_length.rst",
            category="figures",
            labels={"figure": "LSTM, figure 3"},
        ),
        "<results>/paper/lstm_figure3.pdf",
        points="<results>/paper/lstm_figure3.points.csv",
    log:
        "<logs>/paper/plot_bleu_by_length.log",
    benchmark:
        "<benchmarks>/paper/plot_bleu_by_length.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("plot_bleu_by_length"),
        # The legend: model, run and decoding of the system, and the name of the list.
        names=lambda w: plan.curves()[1],
        stand_in=scale.stand_in,
    script:
        "../workflow/scripts/plot_bleu_by_length.py"


rule plot_learning_curve:
    """Plot the perplexities and learning rates of a training."""
    input:
        history="<results>/{task}/models/{model}/{run}/history.jsonl",
        changed=changed("plot_learning_curve"),
    output:
        report(
            "<results>/{task}/models/{model}/{run}/curve.svg",
            caption="../workflow/report/curve.rst",
            category="{task}",
            labels={"model": "{model}", "run": "{run}", "plot": "learning curve"},
        ),
        "<results>/{task}/models/{model}/{run}/curve.png",
    log:
        "<logs>/{task}/{model}/{run}/curve.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/curve.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("plot_learning_curve"),
        heading=settings.heading,
    script:
        "../workflow/scripts/plot_learning_curve.py"


rule plot_attention:
    """Plot attention for each sentence that config.yaml names (plots.sentences)."""
    input:
        model="<results>/{task}/models/{model}/{run}/model.safetensors",
        translations="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.jsonl",
        changed=changed("plot_attention"),
    output:
        svg=report(
            [f"{plot}.svg" for plot in ATTENTION],
            caption="../workflow/report/attention.rst",
            category="{task}",
            labels={"model": "{model}", "run": "{run}", "plot": "attention"},
        ),
        png=[f"{plot}.png" for plot in ATTENTION],
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.attention.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.attention.tsv"
    conda:
        environment("train")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(10),
    params:
        code=code("plot_attention"),
        lines=options.plots.sentences,
        heading=settings.heading,
    script:
        "../workflow/scripts/plot_attention.py"
