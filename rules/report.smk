"""The report: every table, figure, curve and example in one HTML file that needs no network."""


rule write_report:
    input:
        shown_in_report,
        ledger=layout.ledger,
        claims="<results>/paper/claims.json",
    output:
        "<results>/paper/report.html",
    log:
        "<logs>/paper/report.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    resources:
        workflow_folder=str(ROOT),
    params:
        shown=lambda w: {name: contents_of_table(name) for name in CELLS},
        attention_of="figure3",
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
