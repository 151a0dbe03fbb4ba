"""Java, the Spark cluster of one machine and its keys: what stands below every Spark session."""
