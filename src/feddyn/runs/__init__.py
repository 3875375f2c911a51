"""Whole runs: what defines one, how it is simulated, saved and resumed."""
