"""Commands about servers and clusters: one module a subcommand, one table of them."""
