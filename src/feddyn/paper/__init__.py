"""Every table and figure of the paper as settings; the paper's numbers live here and nowhere else."""
