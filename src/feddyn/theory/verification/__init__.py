"""The theorems' lemmas and bounds, checked by machine on problems with known constants."""
