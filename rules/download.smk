"""Downloads, and two sources inside the package: the demo corpora and the miniature mirror."""

DEMO_PARTS = expand("en_fr/{s}", s=["train", "valid", "test"]) + expand(
    "clauses_en_fr/{s}", s=["train", "valid", "test_filtered", "test_rest"]
)


# `update` keeps Snakemake from removing an existing file, such as one from another checkout, before
# the job. The job compares its checksum, and fetches the file only if it differs. There is no param
# `code`, as an edit of the code must not fetch files again.
rule download_file:
    """Fetch a file from its address or a mirror, and check its checksum."""
    input:
        layout.mirror if scale.generated_mirror else [],  # <results>/archives, by write_mirror
        changed=changed("download_file"),
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
        environment("text")
    params:
        tries=tries("download_file"),
        # Address, size, sha256 and md5 from config/downloads.yaml and the scale. If one of them
        # changes, the job runs and checks the file again. The key `mirrors` of config.yaml is read
        # by the job itself, so a change of it does not run the job.
        source=lambda w: in_one_line(settings.download_at)(f"{w.host}/{w.path}"),
    script:
        "../workflow/scripts/download_file.py"


# The sentences are data files of the package, which the param `code` covers. No setting changes
# them.
rule write_demo_corpus:
    """Write the sentences of the demo, which are in the package."""
    input:
        changed=changed("write_demo_corpus"),
    output:
        expand("<downloads>/demo/{part}.{lang}", part=DEMO_PARTS, lang=["en", "fr"]),
    log:
        "<logs>/download/demo.log",
    benchmark:
        "<benchmarks>/download/demo.tsv"
    localrule: True
    conda:
        environment("text")
    params:
        code=code("write_demo_corpus"),
    script:
        "../workflow/scripts/write_demo_corpus.py"


# The mirror is a data file of the package, which the param `code` covers. It replaces the downloads
# that config/downloads.yaml had when tools/mirror wrote it. No setting changes it.
rule write_mirror:
    """Write small files in place of all downloads."""
    input:
        changed=changed("write_mirror"),
    output:
        directory(layout.mirror),  # <results>/archives
    log:
        "<logs>/download/mirror.log",
    benchmark:
        "<benchmarks>/download/mirror.tsv"
    localrule: True
    conda:
        environment("text")
    params:
        code=code("write_mirror"),
    script:
        "../workflow/scripts/write_mirror.py"
