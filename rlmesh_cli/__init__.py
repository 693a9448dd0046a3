"""The command line: routes in, tables and run folders out."""

__version__ = "0.1.0"
