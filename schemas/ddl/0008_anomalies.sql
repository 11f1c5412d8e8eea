-- What the shape and anomaly models say: stages slower than their shapes explain, the models
-- themselves, cold windows, and what others measured meanwhile.
-- One row a change of an anomaly; the same change written again replaces itself. Read with FINAL.
CREATE TABLE IF NOT EXISTS anomalies
(
    service LowCardinality(String),
    stage LowCardinality(String),
    cohorts Array(String) COMMENT 'texts of the cohorts that were slower so far',
    phase LowCardinality(String) COMMENT 'started, spread, ended, accepted, or lost with its models',
    test LowCardinality(String) COMMENT 'mean, tail, share or slope: what found it',
    onset DateTime64(9, 'UTC') COMMENT 'when the stage became slower',
    started_at DateTime64(9, 'UTC') COMMENT 'when that was found; with the stage it names the anomaly',
    at DateTime64(9, 'UTC') COMMENT 'event time of the change',
    effect_pct Nullable(Float64) COMMENT 'per cent of the time expected for the same shapes',
    low_pct Nullable(Float64) COMMENT '95 % interval of effect_pct',
    high_pct Nullable(Float64),
    effect_ms Nullable(Float64) COMMENT 'milliseconds a request',
    low_ms Nullable(Float64),
    high_ms Nullable(Float64),
    expected_ms Nullable(Float64) COMMENT 'mean time expected for the shapes that came',
    measured_ms Nullable(Float64) COMMENT 'mean time measured for the same shapes',
    n UInt64 COMMENT 'rows since the onset, faded',
    deploy String COMMENT 'version of the nearest deploy before the onset; empty: none within a day',
    cause LowCardinality(String) COMMENT 'of the newest report that names one for the stage; else empty'
)
ENGINE = ReplacingMergeTree(at)
PARTITION BY toYYYYMM(started_at)
ORDER BY (service, stage, started_at, phase);

-- What is expected of each stage of each cohort: the regression as it was, at most once a minute.
CREATE TABLE IF NOT EXISTS shape_models
(
    service LowCardinality(String),
    stage LowCardinality(String),
    cohort String,
    at DateTime64(3, 'UTC') COMMENT 'event time',
    state LowCardinality(String) COMMENT 'learning, ready, unseen_shape, alarmed or accepted',
    terms Array(String) COMMENT 'such as input_tokens·batch_size; those that count',
    coefficients Array(Float64) COMMENT 'milliseconds a unit of each term',
    rows Float64 COMMENT 'that it was learnt from, faded',
    r2 Nullable(Float64) COMMENT 'of the best fit in the newest report, see audit_shape',
    sigma Nullable(Float64) COMMENT 'standard deviation of the logarithm of measured by expected'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (service, stage, cohort, at);

CREATE TABLE IF NOT EXISTS cold_windows
(
    service LowCardinality(String),
    version String COMMENT 'what was deployed; of a suspected start the instance',
    start DateTime64(3, 'UTC'),
    end DateTime64(3, 'UTC'),
    source LowCardinality(String) COMMENT 'deploy, scale_up or suspected',
    learnt_min Nullable(Float64) COMMENT 'minutes until the service is warm, as learnt from its deploys',
    written DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(written)
PARTITION BY toYYYYMM(start)
ORDER BY (service, start, version, source);

-- What hardware, engines and platforms say of themselves, from the topic of signals.
CREATE TABLE IF NOT EXISTS signals
(
    service LowCardinality(String),
    instance LowCardinality(String),
    name LowCardinality(String) COMMENT 'such as gpu_temperature',
    timestamp DateTime64(3, 'UTC'),
    value Float64
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(timestamp)
ORDER BY (service, name, instance, timestamp);

-- One row an anomaly: since when, until when, how much.
CREATE OR REPLACE VIEW regressions AS
SELECT
    service,
    stage,
    started_at,
    min(anomalies.onset) AS onset,
    argMax(phase, anomalies.at) AS state,
    if(state IN ('ended', 'accepted', 'lost'), max(anomalies.at), NULL) AS ended_at,
    argMax(anomalies.cohorts, anomalies.at) AS cohorts,
    argMax(tuple(anomalies.effect_pct), anomalies.at).1 AS effect_pct,
    argMax(tuple(anomalies.low_pct), anomalies.at).1 AS low_pct,
    argMax(tuple(anomalies.high_pct), anomalies.at).1 AS high_pct,
    argMax(tuple(anomalies.effect_ms), anomalies.at).1 AS effect_ms,
    argMax(tuple(anomalies.expected_ms), anomalies.at).1 AS expected_ms,
    argMax(tuple(anomalies.measured_ms), anomalies.at).1 AS measured_ms,
    argMin(anomalies.test, anomalies.at) AS test,
    argMax(anomalies.deploy, anomalies.at) AS deploy,
    argMax(anomalies.cause, anomalies.at) AS cause
FROM anomalies FINAL
GROUP BY service, stage, started_at;
