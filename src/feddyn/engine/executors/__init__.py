"""Who does the work of a round: this process, processes of its own, or several ranks."""
