"""The parts of the workflow: its plan, jobs, locks, fingerprints of code, and their status."""
