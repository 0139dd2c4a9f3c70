"""Queries over given tables: SQL, because the definitions read best in it, and its result as another table."""

from pyspark.sql import DataFrame


def query(text: str, **tables: DataFrame) -> DataFrame:
    """The result of a query that names its tables in braces."""
    some = next(iter(tables.values()))
    return some.sparkSession.sql(text, None, **tables)
