"""The papers' claims: what they say in words, held against the runs of the ledger."""


include: "inputs/claims.smk"


rule write_claims:
    input:
        ledger=layout.ledger,
    output:
        multiext("<results>/paper/claims", ".csv", ".json"),
        "<results>/paper/claims.md",
    log:
        "<logs>/paper/claims.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    resources:
        workflow_folder=str(ROOT),
    params:
        stated=claims_and_tables,
        code=script_code("write_claims.py"),
    script:
        "../workflow/scripts/write_claims.py"
