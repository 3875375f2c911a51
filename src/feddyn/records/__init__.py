"""The layout of a run on disk, written and read here only; needs no torch."""
