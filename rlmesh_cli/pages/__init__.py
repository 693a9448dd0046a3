"""Pages: runs as one HTML file - what it says here, how it looks in `look`."""
