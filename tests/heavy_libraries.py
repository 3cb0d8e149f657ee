"""Libraries that an import of drillrank or of an adapter must not load."""

# Each of them takes longer to load than the package itself; what a call needs is loaded by it.
HEAVY = {"torch", "transformers", "sentence_transformers", "sklearn", "scipy", "pyromark"}
