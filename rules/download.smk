"""Files from elsewhere; the demo corpora and the miniature mirror, which the package holds."""

DEMO_PARTS = expand("en_fr/{s}", s=["train", "valid", "test"]) + expand(
    "clauses_en_fr/{s}", s=["train", "valid", "test_filtered", "test_rest"]
)


# `update`: Snakemake leaves a file that is there, as from another checkout, to the job, which compares
# its checksum and fetches it only where it differs. No `code`: an edit of the code fetches nothing.
rule download_file:
    """Fetch a file from its address or a mirror, and check its checksum."""
    input:
        layout.mirror if scale.generated_mirror else [],
    output:
        update("<downloads>/{host}/{path}"),
    log:
        "<logs>/download/{host}/{path}.log",
    benchmark:
        "<benchmarks>/download/{host}/{path}.tsv"
    wildcard_constraints:
        host="(?!(demo|titles)/)[^/]+",
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        tries=tries("download_file"),
        source=lambda w: in_one_line(settings.download_at)(f"{w.host}/{w.path}"),
    script:
        "../workflow/scripts/download_file.py"


rule write_demo_corpus:
    """Write the demo's sentences, which the package holds."""
    output:
        expand("<downloads>/demo/{part}.{lang}", part=DEMO_PARTS, lang=["en", "fr"]),
    log:
        "<logs>/download/demo.log",
    benchmark:
        "<benchmarks>/download/demo.tsv"
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        code=code("write_demo_corpus"),
    script:
        "../workflow/scripts/write_demo_corpus.py"


rule write_mirror:
    """Write a miniature of all that would be downloaded."""
    output:
        directory(layout.mirror),
    log:
        "<logs>/download/mirror.log",
    benchmark:
        "<benchmarks>/download/mirror.tsv"
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        code=code("write_mirror"),
    script:
        "../workflow/scripts/write_mirror.py"
