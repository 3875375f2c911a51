"""A deployment on real machines: its app, keys, scripts and units, a demonstration, and what it is up to."""
