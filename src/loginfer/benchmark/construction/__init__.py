"""The three steps of section 3, and the variants of what they build."""
