"""How a run, and runs beside each other, look to a person: words, tables, curves. Reads and needs no torch."""
