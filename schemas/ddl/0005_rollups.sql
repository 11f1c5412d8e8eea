-- Evidence of longer spans, merged from panes so that a report over months reads few rows.
-- A rollup counts only while its fingerprint is that of the panes and deploys it was merged from;
-- one that is stale or missing is made anew from what is below it. Dropping the table loses nothing.
CREATE TABLE IF NOT EXISTS rollups
(
    service LowCardinality(String),
    span_s UInt32 COMMENT '300, 3600 or 86400',
    start DateTime('UTC') COMMENT 'event time',
    fingerprint UInt64 COMMENT 'of the versions of all panes in the span, and of its deploys',
    made DateTime64(3, 'UTC') COMMENT 'when it was merged; the newest counts',
    payload String CODEC(NONE) COMMENT 'the evidence, compressed by whoever wrote it'
)
ENGINE = ReplacingMergeTree(made)
PARTITION BY toYYYYMM(start)
ORDER BY (service, span_s, start);
