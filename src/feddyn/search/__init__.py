"""Hyperparameter searches: spaces, drivers and batched grids."""
