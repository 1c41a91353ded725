"""Rules as queries, for any database that speaks SQL."""
