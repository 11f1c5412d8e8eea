"""Where records come from and how they flow.

Follow one record in this order:

1. `streams.sources` decodes the bytes of a format to columns;
2. `streams.transport` hands Faust one event a poll of one partition, not one a record;
3. `streams.agents.ingest` cuts the input into segments and publishes their pane summaries;
4. `streams.protocol` says what such a message carries, and when it counts;
5. `streams.agents.audit` merges them per service, judges, and writes to ClickHouse, while
   `streams.anomalies` scores the stages of their sampled requests;
   `streams.alert_book` has the states of alerts, `streams.alert_log` keeps and publishes changes;
6. `streams.delivery` tells the chat channels.

Services make the records with `streams.instrument`, which is light to import; so is this package.
A log that is audited offline comes in by `streams.audit_log`, through the decoders of step 1, and
`streams.log_report` draws its report. `streams.history` reads any range back from ClickHouse, and
`streams.service_report` draws the report of that.
"""
