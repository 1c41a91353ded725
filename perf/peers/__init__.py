"""The same questions asked of other systems, each at its best settings."""
