"""Papers, scales and datasets as data, and what they resolve to: run specs, tables and the scores a table needs."""
