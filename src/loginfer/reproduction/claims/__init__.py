"""The paper's findings, one by one: what it claims, how that is tested, and what figures say."""
