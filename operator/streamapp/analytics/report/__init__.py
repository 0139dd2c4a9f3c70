"""The report: the current version of the tables as one page that needs no network, without Spark."""
