"""Files from elsewhere, and the demo corpus, which the package itself generates."""

from convs2s.data.download import local_path

UPSTREAM = {
    str(local_path(file.location, Path())): file.location
    for file in map(parse_file_reference, flow.references(tasks))
    if file.is_url
}


def download_source(name):
    """Where a file comes from and what is known of it: the arguments of download."""
    url = UPSTREAM[name]
    known = settings.downloads.get(url, {"bytes": None, "sha256": None, "md5": None})
    if scale["checksums"]:
        known = {**known, "bytes": None, "sha256": flow.checksum(Path(scale["checksums"]), name)}
    return {
        "url": url,
        "mirrors": options["mirrors"],
        "size": known["bytes"],
        "sha256": known["sha256"],
        "md5": None if scale["checksums"] else known["md5"],
    }


rule download_file:
    localrule: True
    output:
        "<downloads>/{host}/{path}",
    wildcard_constraints:
        host="(?!demo/)[^/]+",
    log:
        "<logs>/download/{host}/{path}.log",
    conda:
        "../envs/text.yaml"
    params:
        source=lambda w: download_source(f"{w.host}/{w.path}"),
    script:
        "../workflow/scripts/download.py"


rule demo_corpus:
    localrule: True
    output:
        expand(
            "<downloads>/demo/en_fr/{split}.{lang}",
            split=["train", "valid", "test"],
            lang=["en", "fr"],
        ),
    log:
        "<logs>/download/demo.log",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("demo_corpus.py"),
    script:
        "../workflow/scripts/demo_corpus.py"
