"""What an operator sees of the server's work: counts, log lines, the queries that were asked, traces."""
