"""Compiled passes over the bytes of graph files; imported only when a file is read or written."""
