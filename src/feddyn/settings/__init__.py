"""Settings files: TOML documents checked against signatures, and the objects that they stand for."""
