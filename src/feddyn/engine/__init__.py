"""A federation on one machine or many: who trains whom, device states, links, and the processes that do the work."""
