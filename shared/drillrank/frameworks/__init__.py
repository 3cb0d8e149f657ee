"""Parts that the adapters of all frameworks share. This package imports no framework."""
