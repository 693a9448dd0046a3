"""Reports: what a run tells continuous integration, as files that its services read."""
