-- Alerts as they moved from state to state, and what became of each notice.
-- A change has a number within its alert: written again it replaces itself. Read with FINAL.
CREATE TABLE IF NOT EXISTS alert_changes
(
    service LowCardinality(String),
    alert LowCardinality(String) COMMENT 'such as p99, or slo:latency',
    sequence UInt64 COMMENT 'number of the change within its alert, from 1',
    at DateTime64(9, 'UTC') COMMENT 'event time of the change',
    alert_id String COMMENT 'the same for all changes of one incident',
    before LowCardinality(String) COMMENT 'resolved, pending, firing, no_data or muted',
    after LowCardinality(String),
    reason LowCardinality(String) COMMENT 'why, one of a fixed list',
    detail String COMMENT 'the figures, for a person',
    severity LowCardinality(String) COMMENT 'page or ticket; empty outside of incidents',
    began Nullable(DateTime64(9, 'UTC')) COMMENT 'when the incident began',
    cleared Nullable(DateTime64(9, 'UTC')) COMMENT 'since when its condition is over',
    budget_left_pct Nullable(Float64) COMMENT 'of the error budget',
    budget_cost_pct Nullable(Float64) COMMENT 'part of the budget that the incident spent',
    state String COMMENT 'the state after it as JSON, from which a worker goes on',
    payload String CODEC(ZSTD(3)) COMMENT 'the whole message as JSON'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (service, alert, sequence, at);

CREATE TABLE IF NOT EXISTS alert_notices
(
    service LowCardinality(String),
    alert LowCardinality(String),
    sequence UInt64 COMMENT 'of the change that it told',
    channel LowCardinality(String) COMMENT 'name of the channel in the settings',
    at DateTime64(3, 'UTC') COMMENT 'when the channel took or refused it, by our clock',
    state LowCardinality(String) COMMENT 'the state that it told',
    severity LowCardinality(String) COMMENT 'the urgency that it told',
    outcome LowCardinality(String) COMMENT 'delivered, refused or given_up',
    attempts UInt32,
    error String COMMENT 'what the channel said last; without secrets'
)
ENGINE = ReplacingMergeTree(at)
PARTITION BY toYYYYMM(at)
ORDER BY (service, alert, sequence, channel);
