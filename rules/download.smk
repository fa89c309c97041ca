"""Files from elsewhere, and the demo corpus, which the package itself generates."""

from dataclasses import asdict

from convs2s.config.file_reference import parse_file_reference
from convs2s.download.sources import at_scale, sources_by_place


with failures_in_one_line():
    # Place of a file below the downloads folder -> where it comes from and what is known of it.
    DOWNLOADS = sources_by_place(settings)


def local_files(references):
    """Where the files that are referred to lie on this machine, once they have been downloaded."""
    files = map(parse_file_reference, references)
    return list(dict.fromkeys(str(file.path(Path(layout.downloads))) for file in files))


def download_source(wildcards):
    """Where a file comes from and what is known of it: the arguments of download_file."""
    place = f"{wildcards.host}/{wildcards.path}"
    with failures_in_one_line():
        return asdict(at_scale(DOWNLOADS[place], place, scale))


rule download_file:
    output:
        "<downloads>/{host}/{path}",
    log:
        "<logs>/download/{host}/{path}.log",
    wildcard_constraints:
        host="(?!demo/)[^/]+",
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        source=download_source,
    script:
        "../workflow/scripts/download_file.py"


rule write_demo_corpus:
    output:
        expand(
            "<downloads>/demo/en_fr/{split}.{lang}",
            split=["train", "valid", "test"],
            lang=["en", "fr"],
        ),
    log:
        "<logs>/download/demo.log",
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("write_demo_corpus.py"),
    script:
        "../workflow/scripts/write_demo_corpus.py"
