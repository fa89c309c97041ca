"""What the papers state beside ours: tables, the ledger of our runs, claims, and what all of it took.

Tables, ledger, costs and report show the scores that are there, so that asking for them trains
nothing; `snakemake paper` makes all scores first (docs/decisions/0010). Which files that is, `plan`
says (src/convs2s/pipeline/plan.py), for these rules and those of figures.smk:

plan.cells          of each table and figure (`table1`, `figure2`) its cells: task, model, runs, test
                    set, decoding. By config/paper.yaml, the scale, and the settings of what is run;
                    the papers' numbers are not in them.
plan.planned        the same without what is not made here: cells that a published ledger has, whose
                    licensed files are missing, or that time a GPU where `device` asks for none.
plan.fingerprints(cells)  file -> digest of what its run is computed from, for a param, which so changes
                    with a recipe or decoding that a table uses.
plan.runs           the trainings of plan.planned, as folders: `<results>/TASK/models/MODEL/seed1`.
plan.scores(table)  the files of its planned cells, one a run:
                    `<results>/TASK/models/MODEL/seed1/test.beam5.bleu.json` (or .rouge.json,
                    .speed.json, .perplexity.json, .rescored.bleu.json; of figure3 .example.json, of
                    lstm_figure2 phrases.NAME.json). Those that are there; all if the command line
                    asks for `paper`; those of table3 alone also if it asks for `speed`.
plan.finished(files)  of any files those that are there; all if the command line asks for `paper`.
plan.published      the ledger that config.yaml's `published` names, or nothing: a file of the user's, or
                    of an address the copy in .snakemake/convs2s/published.
plan.contents(table)  what a table shows beside scores: its section of config/paper.yaml, the
                    fingerprints of its runs, plan.above, config/costs.yaml's trainings, and why runs failed.
plan.above          what each page says of the scale: its `stand_in` and `left_out`.
plan.drawn_cells(figure)  the planned cells of a figure, all of them: asking for the figure makes them.
                    Where none is planned, the run ends with the reason.

What is there and out of date is made again, as any input of Snakemake's.

A job reads the cells from the configuration, their files in the folder of results that its output is
in; the param `shown` runs it again. `page` is where an output lies without a module's prefix, from which
the job tells the prefix.
"""

import os
import sys


rule write_table:
    """A table of a paper, its values beside ours."""
    input:
        scores=lambda w: plan.scores(w.table),
        published=lambda w: [local(file) for file in plan.published],
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex", ".svg", ".md"),
    log:
        "<logs>/paper/{table}.log",
    benchmark:
        "<benchmarks>/paper/{table}.tsv"
    wildcard_constraints:
        table=alternatives(name for name in plan.cells if "figure" not in name),
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        code=code("write_table"),
        shown=lambda w: plan.contents(w.table),
    script:
        "../workflow/scripts/write_table.py"


rule write_figure_table:
    """The numbers of a paper's figure; its .svg is the plot."""
    input:
        scores=lambda w: plan.scores(w.table),
        published=lambda w: [local(file) for file in plan.published],
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex", ".md"),
    log:
        "<logs>/paper/{table}.log",
    benchmark:
        "<benchmarks>/paper/{table}.tsv"
    wildcard_constraints:
        table=alternatives(name for name in plan.cells if "figure" in name),
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        code=code("write_table", "write_figure_table"),
        shown=lambda w: plan.contents(w.table),
    script:
        "../workflow/scripts/write_table.py"


rule write_ledger:
    """A line for each run that a table rests on: its score, settings and checksums."""
    input:
        scores=lambda w: plan.scores(*plan.planned),
        published=lambda w: [local(file) for file in plan.published],
    output:
        "<results>/paper/ledger.jsonl",
    log:
        "<logs>/paper/ledger.log",
    benchmark:
        "<benchmarks>/paper/ledger.tsv"
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        code=code("write_ledger"),
        runs=lambda w: {name: plan.fingerprints(of) for name, of in plan.cells.items()},  # for reruns
        scale=options.scale,
    script:
        "../workflow/scripts/write_ledger.py"


rule write_claims:
    """The papers' claims, and what our scores say of each."""
    input:
        ledger="<results>/paper/ledger.jsonl",
    output:
        multiext("<results>/paper/claims", ".csv", ".json", ".md"),
    log:
        "<logs>/paper/claims.log",
    benchmark:
        "<benchmarks>/paper/claims.tsv"
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        code=code("write_claims"),
        # The script reads the configuration itself. These three are here so that a change of
        # config/claims.yaml, config/paper.yaml or the scale's stand_in writes the claims again.
        claims=lambda w: {name: claim.model_dump_json() for name, claim in settings.claims.items()},
        paper=lambda w: {name: table.model_dump_json() for name, table in settings.paper.items()},
        above=plan.above,
    script:
        "../workflow/scripts/write_claims.py"


# Of the jobs that made the scores, their benchmark files tell the time: the job takes those that
# are there. The ledger comes after all scores.
rule write_costs:
    """What each table and figure took, and what the rest is expected to take."""
    input:
        lambda w: plan.finished(f"{run}/history.jsonl" for run in plan.runs),
        ledger="<results>/paper/ledger.jsonl",
    output:
        multiext("<results>/paper/costs", ".csv", ".md"),
    log:
        "<logs>/paper/costs.log",
    benchmark:
        "<benchmarks>/paper/costs.tsv"
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        code=code("write_costs"),
        page=lambda w: layout.paper("costs"),
        planned=lambda w: {name: plan.fingerprints(of) for name, of in plan.planned.items()},
        benchmarks=plan.benchmarks,
        # For reruns alone: config/costs.yaml, and what the page says of the scale.
        stated=lambda w: [settings.costs.model_dump(mode="json"), plan.above],
    script:
        "../workflow/scripts/write_costs.py"


rule write_report:
    """All tables, figures and claims on one page."""
    input:
        # Those that are there (all for `paper`) of: history.jsonl and training.json of plan.runs; <results>/paper/X.svg
        # of the figures; figure3's example.json; and of the first run of each task and test set that was
        # translated, its test.beam5.jsonl with <results>/TASK/corpus/raw/test.target.zst.
        lambda w: plan.shown_in_report(),
        ledger="<results>/paper/ledger.jsonl",
        claims="<results>/paper/claims.json",
    output:
        report(
            "<results>/paper/report.html",
            caption="../workflow/report/page.rst",
            category="paper",
            labels={"result": "report"},
        ),
    log:
        "<logs>/paper/report.log",
    benchmark:
        "<benchmarks>/paper/report.tsv"
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        code=code("write_report"),
        shown=lambda w: {name: plan.contents(name) for name in plan.cells},
    script:
        "../workflow/scripts/write_report.py"


rule show_in_report:
    """A table, the claims or the costs as a page of Snakemake's own report."""
    input:
        "<results>/paper/{page}.md",
    output:
        report(
            "<results>/shown/paper.{page}.html",
            caption="../workflow/report/page.rst",
            category="paper",
            labels={"result": "{page}"},
        ),
    log:
        "<logs>/shown/{page}.log",
    benchmark:
        "<benchmarks>/shown/{page}.tsv"
    wildcard_constraints:
        page=alternatives([*plan.cells, "claims", "costs"]),
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        code=code("show_in_report"),
    script:
        "../workflow/scripts/show_in_report.py"


# Without input and output it runs whenever it is asked for, whatever its params are. The job reads the
# times of jobs that have run from Snakemake's benchmark files.
rule preflight:
    """What a run will take, before it starts: printed, and in the log."""
    log:
        "<logs>/preflight.log",
    retries: 0  # what cannot fit will not fit at a second try
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        tasks=plan.tasks,
        # Those of the paper's tables, unless config.yaml names tasks: then their headlines count.
        planned=lambda w: (
            {}
            if options.tasks
            else {name: plan.fingerprints(of) for name, of in plan.planned.items()}
        ),
        results=layout.results,
        benchmarks=plan.benchmarks,
        stated_log=f"{plan.logs}/preflight.log",  # without a module's prefix, as `page` above
        # What a cluster will be asked for is planned by this command line, with another target.
        command=[sys.executable, "-m", "snakemake", *sys.argv[1:]],
        targets=["evaluate" if options.tasks else "paper"],
        started_in=os.environ.get("PWD", "."),
    script:
        "../workflow/scripts/preflight.py"
