"""Files from elsewhere; the demo corpora and the miniature mirror, which the package holds."""

DEMO_PARTS = expand("en_fr/{s}", s=["train", "valid", "test"]) + expand(
    "clauses_en_fr/{s}", s=["train", "valid", "test_filtered", "test_rest"]
)


# `update`: before the job runs Snakemake does not remove a file that is there, as from another checkout;
# the job compares its checksum, and fetches it only where it differs. A file that is there and that
# Snakemake has no record of is up to date. No `code`: an edit of the code fetches nothing.
rule download_file:
    """Fetch a file from its address or a mirror, and check its checksum."""
    input:
        layout.mirror if scale.generated_mirror else [],  # <results>/archives, by write_mirror
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
        # Address, size, sha256 and md5 by config/downloads.yaml and the scale; a change of one of them
        # checks the file again. `mirrors` of config.yaml are read by the job and run nothing.
        source=lambda w: in_one_line(settings.download_at)(f"{w.host}/{w.path}"),
    script:
        "../workflow/scripts/download_file.py"


# The sentences are data files of the package, which `code` covers; no setting changes them.
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


# The package holds it as a data file, which `code` covers. It has the files that config/downloads.yaml
# had when tools/mirror wrote it; no setting changes them.
rule write_mirror:
    """Write a miniature of all that would be downloaded."""
    output:
        directory(layout.mirror),  # <results>/archives
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
