"""The folder that a benchmark lives in: written, read, described."""
