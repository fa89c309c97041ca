"""What the workflow runs on: paths, jobs, fingerprints, budgets."""
