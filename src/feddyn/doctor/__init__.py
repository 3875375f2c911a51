"""What is going on in a run, in words, by its record; trains nothing, needs no torch."""
