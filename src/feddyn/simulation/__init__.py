"""Running a federation on one machine."""
