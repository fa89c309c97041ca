"""The entry of `snakemake` in a clone. The workflow itself is in workflow/Snakefile.

snakedeploy and the workflow catalog expect it there, and so do workflows that use it as a module.
"""


include: "workflow/Snakefile"


# Snakemake ignores the default target of an included file, so this file has its own.
rule default:
    """Make the demo, if no target is named."""
    default_target: True
    input:
        rules.demo.input,
    localrule: True
