"""Random damage to everything that the program reads: `make fuzz`, or `python -m tests.fuzz --help`."""
