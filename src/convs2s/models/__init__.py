"""The networks as functions of tensors, and as graphs; no configuration files."""
