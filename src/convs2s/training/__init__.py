"""The trainer: optimisation, schedule, checkpoints, data order."""
