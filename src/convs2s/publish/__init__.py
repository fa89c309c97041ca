"""What leaves this machine: model cards, and results with what they rest on."""
