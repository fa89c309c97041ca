"""The networks as pure tensor functions: no files, no configuration files."""
