"""The range indexes side by side: alone, with 10,000,000 queries, and through Spark."""
