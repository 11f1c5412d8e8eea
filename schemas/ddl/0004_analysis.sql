-- Views that take an audit apart. Each wants a service and a range of panes [from, to), UTC.

-- tail(service = …, from = …, to = …): a row a stage: its mean over the slow band (ranks P95 to P99
-- of the successes) and over the fast band (P40 to P50). Where a band begins or ends inside a bucket
-- of the tail profile, that fraction of the bucket's sums counts.
CREATE OR REPLACE VIEW tail AS
WITH
    buckets AS
    (
        SELECT p.stages AS stages, bucket, sum(n_here) AS n, sumForEach(ns_here) AS ns
        FROM current_panes AS p
        ARRAY JOIN
            p.profile_b AS bucket,
            p.profile_n AS n_here,
            arrayMap(
                r -> arraySlice(p.profile_ns, (r - 1) * length(p.stages) + 1, length(p.stages)),
                arrayEnumerate(p.profile_b)) AS ns_here
        WHERE p.stage = 'total'
            AND p.service = {service:String}
            AND p.pane >= parseDateTimeBestEffort({from:String}, 'UTC')
            AND p.pane < parseDateTimeBestEffort({to:String}, 'UTC')
        GROUP BY stages, bucket
    ),
    placed AS
    (
        SELECT
            stages, ns,
            sum(n) OVER (PARTITION BY bucket) AS size,
            sum(n) OVER (ORDER BY bucket) AS last,
            sum(n) OVER () AS total,
            (toInt64(intDiv(total * 95 + 99, 100)), toInt64(intDiv(total * 99 + 99, 100))) AS slow,
            (toInt64(intDiv(total * 40 + 99, 100)), toInt64(intDiv(total * 50 + 99, 100))) AS fast,
            greatest(least(toInt64(last), slow.2) - greatest(toInt64(last - size), slow.1 - 1), 0) / size AS slow_share,
            greatest(least(toInt64(last), fast.2) - greatest(toInt64(last - size), fast.1 - 1), 0) / size AS fast_share
        FROM buckets
    ),
    means AS
    (
        SELECT
            stage_here AS stage,
            any(slow.2 - slow.1 + 1) AS slow_n,
            any(fast.2 - fast.1 + 1) AS fast_n,
            sum(stage_ns * slow_share) / slow_n / 1e6 AS mean_slow_ms,
            sum(stage_ns * fast_share) / fast_n / 1e6 AS mean_fast_ms
        FROM placed
        ARRAY JOIN stages AS stage_here, ns AS stage_ns
        WHERE stage_here NOT IN ('failed', 'logged', 'ttft', 'itl', 'tpot', 'goodput')
        GROUP BY stage
    )
SELECT
    stage, slow_n, fast_n, mean_fast_ms, mean_slow_ms,
    mean_slow_ms - mean_fast_ms AS delta_ms,
    max(if(stage = 'total', delta_ms, NULL)) OVER () AS total_delta_ms,
    if(total_delta_ms > 0, least(100 * delta_ms / total_delta_ms, 100), NULL) AS tail_share_pct
FROM means;

-- stage_table(service = …, from = …, to = …): percentiles of each stage beside its part in the tail.
CREATE OR REPLACE VIEW stage_table AS
SELECT
    l.stage AS stage, l.n AS n, l.mean_ms AS mean_ms, l.p50_ms AS p50_ms, l.p95_ms AS p95_ms,
    l.p99_ms AS p99_ms, l.max_ms AS max_ms,
    if(t.stage = '', NULL, t.mean_fast_ms) AS mean_fast_ms,
    if(t.stage = '', NULL, t.mean_slow_ms) AS mean_slow_ms,
    if(t.stage = '', NULL, t.delta_ms) AS delta_ms,
    t.tail_share_pct AS tail_share_pct
FROM latency_of(service = {service:String}, from = {from:String}, to = {to:String}) AS l
LEFT JOIN tail(service = {service:String}, from = {from:String}, to = {to:String}) AS t
    ON l.stage = t.stage;

-- cohort_table(service = …, from = …, to = …, dimension = 'route'): a row a value of the dimension.
-- Slow requests are those above the P95 of all, failures being the slowest; the bucket in which that
-- P95 lies is shared out.
CREATE OR REPLACE VIEW cohort_table AS
WITH
    counts AS
    (
        SELECT
            if(mapContains(p.dims, {dimension:String}), p.dims[{dimension:String}], if(mapContains(p.dims, '(other)'), '(other)', '(none)')) AS value,
            bucket,
            sum(count_here) AS count,
            min(p.min_ms) AS low,
            max(p.max_ms) AS high,
            sumIf(p.requests, bucket = 32767) AS requests_here
        FROM current_panes AS p
        ARRAY JOIN
            arrayPushBack(p.b, toInt16(32767)) AS bucket,
            arrayPushBack(p.c, p.failed) AS count_here
        WHERE p.stage = 'total'
            AND p.service = {service:String}
            AND p.pane >= parseDateTimeBestEffort({from:String}, 'UTC')
            AND p.pane < parseDateTimeBestEffort({to:String}, 'UTC')
        GROUP BY value, bucket
    ),
    placed AS
    (
        SELECT
            value, bucket, count, low, high, requests_here,
            sum(count) OVER (PARTITION BY bucket) AS size,
            sum(count) OVER (ORDER BY bucket) AS last,
            sum(count) OVER () AS total,
            intDiv(total * 95 + 99, 100) AS rank,
            if(size > 0, count * (last - least(greatest(last - size, rank), last)) / size, 0) AS slow_here,
            min(low) OVER () AS low_all,
            max(high) OVER () AS high_all,
            quantileExactWeightedIf(0.99)(bucket, count, bucket != 32767) OVER () AS bucket_all
        FROM counts
    )
SELECT
    value,
    sum(requests_here) AS requests,
    sumIf(count, bucket = 32767) AS failed,
    if(
        sumIf(count, bucket != 32767) > 0,
        least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(quantileExactWeightedIf(0.99)(bucket, count, bucket != 32767) + 64832), 46), bitShiftLeft(toUInt64(1), 45))), min(low)), max(high)),
        NULL) AS p99_ms,
    p99_ms - least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(any(bucket_all) + 64832), 46), bitShiftLeft(toUInt64(1), 45))), any(low_all)), any(high_all)) AS delta_ms,
    100 * sum(slow_here) / nullIf(any(total - rank), 0) AS slow_share_pct,
    100 * requests / nullIf(any(total), 0) AS traffic_share_pct
FROM placed
GROUP BY value;

-- shape(service = …, from = …, to = …): least squares of each stage on each covariate, as on the raw
-- rows; loglog_* of the logarithms, whose slope is the exponent of a power law.
CREATE OR REPLACE VIEW shape AS
WITH
    cells AS
    (
        SELECT
            p.stage AS stage, covariate,
            toFloat64(n_here) AS n, mean_here[1] AS mx, mean_here[3] AS my,
            product_here[1] AS pxx, product_here[4] AS pxy, product_here[6] AS pyy,
            toFloat64(log_n_here) AS ln, log_mean_here[1] AS lmx, log_mean_here[2] AS lmy,
            log_product_here[1] AS lxx, log_product_here[2] AS lxy, log_product_here[3] AS lyy
        FROM current_panes AS p
        ARRAY JOIN
            p.covariates AS covariate,
            p.moment_n AS n_here,
            arrayMap(k -> arraySlice(p.moment_mean, 3 * k - 2, 3), arrayEnumerate(p.covariates)) AS mean_here,
            arrayMap(k -> arraySlice(p.moment_product, 6 * k - 5, 6), arrayEnumerate(p.covariates)) AS product_here,
            p.log_n AS log_n_here,
            arrayMap(k -> arraySlice(p.log_mean, 2 * k - 1, 2), arrayEnumerate(p.covariates)) AS log_mean_here,
            arrayMap(k -> arraySlice(p.log_product, 3 * k - 2, 3), arrayEnumerate(p.covariates)) AS log_product_here
        WHERE p.stage NOT IN ('failed', 'logged', 'ttft', 'itl', 'tpot', 'goodput')
            AND n_here > 0
            AND p.service = {service:String}
            AND p.pane >= parseDateTimeBestEffort({from:String}, 'UTC')
            AND p.pane < parseDateTimeBestEffort({to:String}, 'UTC')
    ),
    centres AS
    (
        SELECT
            stage, covariate,
            sum(n * mx) / sum(n) AS cx, sum(n * my) / sum(n) AS cy,
            sum(ln * lmx) / nullIf(sum(ln), 0) AS lcx, sum(ln * lmy) / nullIf(sum(ln), 0) AS lcy
        FROM cells
        GROUP BY stage, covariate
    ),
    merged AS
    (
        SELECT
            stage, covariate, any(cx) AS x, any(cy) AS y, any(lcx) AS lx, any(lcy) AS ly,
            toUInt64(sum(n)) AS rows_n, toUInt64(sum(ln)) AS rows_ln,
            sum(pxx + n * (mx - cx) * (mx - cx)) AS xx,
            sum(pxy + n * (mx - cx) * (my - cy)) AS xy,
            sum(pyy + n * (my - cy) * (my - cy)) AS yy,
            sum(lxx + ln * (lmx - lcx) * (lmx - lcx)) AS log_xx,
            sum(lxy + ln * (lmx - lcx) * (lmy - lcy)) AS log_xy,
            sum(lyy + ln * (lmy - lcy) * (lmy - lcy)) AS log_yy
        FROM cells
        INNER JOIN centres USING (stage, covariate)
        GROUP BY stage, covariate
    )
SELECT
    stage, covariate, rows_n AS n,
    if(xx > 0 AND yy > 0, xy * xy / (xx * yy), NULL) AS r2,
    if(xx > 0, xy / xx, NULL) AS slope_ms_per_unit,
    if(xx > 0, y - xy / xx * x, NULL) AS intercept_ms,
    rows_ln AS loglog_n,
    if(log_xx > 0 AND log_yy > 0, log_xy * log_xy / (log_xx * log_yy), NULL) AS loglog_r2,
    if(log_xx > 0, log_xy / log_xx, NULL) AS loglog_slope
FROM merged;

-- cold_filtered(service = …, from = …, to = …, minutes = 5, env = ''): the P99 with and without the
-- panes that touch a cold window, which lasts from a deploy to `minutes` after its last announcement.
-- An empty env means any. Without a deploy the filtered figures are NULL: not computable.
CREATE OR REPLACE VIEW cold_filtered AS
WITH
    windows AS
    (
        SELECT groupArray((at, last + toIntervalMinute({minutes:UInt32}))) AS cold
        FROM deploys FINAL
        WHERE service = {service:String}
            AND ({env:String} = '' OR env = {env:String})
            AND last >= parseDateTimeBestEffort({from:String}, 'UTC') - toIntervalMinute({minutes:UInt32})
            AND at < parseDateTimeBestEffort({to:String}, 'UTC')
    ),
    seen AS
    (
        SELECT
            p.requests AS requests_of, p.n AS n_of, p.min_ms AS min_of, p.max_ms AS max_of,
            p.b AS b, p.c AS c, length(cold) AS deploys_of,
            NOT arrayExists(w -> p.pane < w.2 AND p.pane + toIntervalSecond(p.pane_s) > w.1, cold) AS warm
        FROM current_panes AS p
        CROSS JOIN windows
        WHERE p.stage = 'total'
            AND p.service = {service:String}
            AND p.pane >= parseDateTimeBestEffort({from:String}, 'UTC')
            AND p.pane < parseDateTimeBestEffort({to:String}, 'UTC')
    )
SELECT
    any(deploys_of) AS deploys,
    sum(requests_of) AS requests,
    if(deploys > 0, sumIf(requests_of, NOT warm), NULL) AS excluded,
    if(sum(n_of) > 0, least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(quantileExactWeightedArray(0.99)(b, c) + 64832), 46), bitShiftLeft(toUInt64(1), 45))), min(min_of)), max(max_of)), NULL) AS unfiltered_p99_ms,
    if(
        deploys > 0 AND sumIf(n_of, warm) > 0,
        least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(quantileExactWeightedArrayIf(0.99)(b, c, warm) + 64832), 46), bitShiftLeft(toUInt64(1), 45))), minIf(min_of, warm)), maxIf(max_of, warm)),
        NULL) AS filtered_p99_ms
FROM seen
HAVING requests > 0;
