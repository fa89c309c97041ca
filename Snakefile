"""The workflow for whoever types `snakemake` in a clone: all of it is in workflow/Snakefile.

That is where snakedeploy and the workflow catalog look for it, and what a module from git can read.
"""


include: "workflow/Snakefile"


# Of a file that is included Snakemake takes no default target.
rule default:
    """Make the demo, where no target is asked for."""
    default_target: True
    input:
        rules.demo.input,
    localrule: True
