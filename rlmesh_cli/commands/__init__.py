"""One module a verb: parse, call, show, leave."""
