"""How far a campaign is: `reprise status`."""
