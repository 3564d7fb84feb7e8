"""Using what was trained: translating and transcribing, models that travel, exports, data and papers of one's own."""
