"""What SQL engines share: the order of joins, the queries, and every method of an engine but its database."""
