"""What the papers state beside ours: tables, the ledger of our runs, claims, and what all of it took."""


rule write_table:
    input:
        scores=wanted_scores,
        published=PUBLISHED_LEDGER,
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex", ".svg", ".md"),
    log:
        "<logs>/paper/{table}.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        shown=lambda w: table_contents(w.table),
    script:
        "../workflow/scripts/write_table.py"


use rule write_table as write_figure_table with:
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex", ".md"),
    wildcard_constraints:
        table=alternatives(DRAWN),  # their .svg is the plot


rule write_ledger:
    input:
        scores=lambda w: finished(path for cell in PLANNED_CELLS for path in cell.paths),
        published=PUBLISHED_LEDGER,
    output:
        "<results>/paper/ledger.jsonl",
    log:
        "<logs>/paper/ledger.log",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        cells=lambda w: [cell for table in CELLS.values() for cell in plain_cells(table)],
        scale=options.scale,  # another one writes the ledger again
    script:
        "../workflow/scripts/write_ledger.py"


rule write_claims:
    input:
        ledger="<results>/paper/ledger.jsonl",
    output:
        multiext("<results>/paper/claims", ".csv", ".json", ".md"),
    log:
        "<logs>/paper/claims.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        # Not read by the script: a change of what is stated writes the claims again.
        claims=lambda w: {name: claim.model_dump_json() for name, claim in settings.claims.items()},
        paper=lambda w: {name: table.model_dump_json() for name, table in settings.paper.items()},
        above=ABOVE,
    script:
        "../workflow/scripts/write_claims.py"


# The ledger comes after all scores. Of the jobs that made them, their benchmark files tell the time:
# no rule has those as outputs, so the job takes what is there.
rule write_costs:
    input:
        lambda w: finished(f"{run}/history.jsonl" for run in PAPER_RUNS),
        ledger="<results>/paper/ledger.jsonl",
    output:
        multiext("<results>/paper/costs", ".csv", ".md"),
    log:
        "<logs>/paper/costs.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        cells=lambda w: cells_made_here(),
        benchmarks=prefixed(BENCHMARKS),
        stated=lambda w: [settings.costs.model_dump(mode="json"), ABOVE],  # not read, as for the claims
    script:
        "../workflow/scripts/write_costs.py"


rule write_report:
    input:
        shown_in_report,
        ledger="<results>/paper/ledger.jsonl",
        claims="<results>/paper/claims.json",
    output:
        "<results>/paper/report.html",
    log:
        "<logs>/paper/report.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        shown=lambda w: {name: table_contents(name) for name in CELLS},
        attention_of=EXAMPLE_FIGURE,
    script:
        "../workflow/scripts/write_report.py"


rule show_in_report:
    input:
        made_for_page,
    output:
        report(
            "<results>/shown/{page}.html",
            caption="../workflow/report/page.rst",
            category=lambda w: w.page.partition(".")[0],
            labels=lambda w: {"result": w.page.partition(".")[2]},
        ),
    log:
        "<logs>/shown/{page}.log",
    wildcard_constraints:
        page=alternatives(SHOWN),
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        source=source_of_page,
    script:
        "../workflow/scripts/show_in_report.py"


# A task's score for `--report`, as soon as it is made; the pages above are of what lies there.
use rule show_in_report as show_score with:
    input:
        "<results>/{task}/{metric}.txt",
    output:
        report(
            "<results>/{task}/{metric}.html",
            caption="../workflow/report/page.rst",
            category="{task}",
            labels={"result": "score"},
        ),
    log:
        "<logs>/{task}/show_{metric}.log",
    params:
        source=lambda w, input: list(input),


# What a run will take, before it starts.
rule preflight:
    log:
        "<logs>/preflight.log",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        tasks=STAGE_TASKS,
        # Those of the paper's tables, unless config.yaml names tasks: then their headlines count.
        cells=lambda w: {} if options.tasks else cells_made_here(),
        benchmarks=prefixed(BENCHMARKS),
        is_local=lambda w: not is_on_cluster(),
        places=PLACES,
    script:
        "../workflow/scripts/preflight.py"
