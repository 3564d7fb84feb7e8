"""Speech: read aloud or collected, listed in manifests, turned into features."""
