"""Runs by name: settings files, and the paper's tables and figures."""
