"""Reading other toolkits' checkpoints."""
