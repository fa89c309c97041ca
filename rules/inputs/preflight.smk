"""The input functions of rules/preflight.smk."""


def cells_to_fill(wildcards):
    """The cells of the paper's tables, unless config.yaml names tasks: then their headlines count."""
    return {} if options.tasks else cells_made_here()
