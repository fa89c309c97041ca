"""The workflow for whoever types `snakemake` in a clone; workflow/Snakefile is all of it."""


include: "workflow/Snakefile"
