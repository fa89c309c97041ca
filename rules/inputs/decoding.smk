"""The input functions of rules/decoding.smk."""


def tuned_penalty(wildcards):
    """Where the tuned length penalty stands; no file where the number is stated."""
    development = scale.development_set(tasks[wildcards.task], settings.decodings[wildcards.decoding])
    if development is None:
        return []
    folder, name = layout.task(wildcards.task), wildcards.decoding
    return [
        folder.translations(wildcards.model, wildcards.run, development, name, "length_penalty.json")
    ]
