"""Federations of real sites: the same algorithms, cut at the wire. Only `wire` and `apps` know Flower."""
