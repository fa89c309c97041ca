"""The configuration as classes: what config.yaml and config/ may say, with every default.

Each section has its class in a module of its own; `convs2s.config.load` reads the files.
"""
