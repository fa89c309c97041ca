"""The trainer: optimization, schedule, checkpoints, data order."""
