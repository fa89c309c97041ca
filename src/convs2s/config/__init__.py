"""The configuration as classes: every key of config.yaml and config/ with its type and default.

There is a module for each file of the configuration. `convs2s.config.load` reads the files.
"""
