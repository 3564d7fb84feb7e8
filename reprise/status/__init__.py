"""Screen and forecast of `reprise status`."""
