"""Files from elsewhere; the demo corpora and the miniature mirror, which the package holds."""

DEMO_FILES = expand("en_fr/{s}", s=["train", "valid", "test"])
DEMO_FILES += expand("clauses_en_fr/{s}", s=["train", "valid", "test_filtered", "test_rest"])


rule download_file:
    input:
        [layout.mirror] if scale.generated_mirror else [],
    output:
        update("<downloads>/{host}/{path}"),  # what another checkout has brought stays
    log:
        "<logs>/download/{host}/{path}.log",
    wildcard_constraints:
        host="(?!(demo|titles)/)[^/]+",
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        source=download_source,
    script:
        "../workflow/scripts/download_file.py"


rule write_demo_corpus:
    output:
        expand("<downloads>/demo/{file}.{lang}", file=DEMO_FILES, lang=["en", "fr"]),
    log:
        "<logs>/download/demo.log",
    localrule: True
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/write_demo_corpus.py"


rule write_mirror:
    output:
        directory(layout.mirror),
    log:
        "<logs>/download/mirror.log",
    localrule: True
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/write_mirror.py"
