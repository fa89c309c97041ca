"""Train networks: data order, updates, schedule, validation, states and the exported model."""
