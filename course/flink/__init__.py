"""The real Flink, for the tests against it: found, or fetched by `sluice flink fetch`."""
