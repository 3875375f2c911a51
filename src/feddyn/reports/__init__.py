"""Tables and figures of runs; reads what runs wrote down and never trains."""
