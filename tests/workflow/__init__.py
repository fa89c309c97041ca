"""Real Snakemake runs."""
