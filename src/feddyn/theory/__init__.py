"""The paper's convergence theory, as functions, and as checks that the algorithms are held to."""
