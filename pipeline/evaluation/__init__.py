"""From text to numbers: what is scored is read and checked, then measured by every metric that applies."""
