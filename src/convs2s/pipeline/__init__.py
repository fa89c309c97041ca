"""What the workflow runs on: jobs, fingerprints of code, the status of trainings and jobs."""
