"""Papers, scales and datasets as data, resolved to run settings, tables and the scores that a table needs."""
