// Percentiles over time against their targets.

import { colour } from "../chart.js";
import { count, ms } from "../format.js";
import { choosable, key, overTime, points } from "./timeline.js";

const NAMES = ["p50", "p95", "p99"];

export function latency(panel, data) {
  const rows = data.percentiles;
  if (!rows.length) return panel.say("No request of this choice in this range.");
  panel.note(`${data.step_s} s a point; a failed request counts as slower than all others. Draw over the chart to choose a range.`);
  const figures = rows.map((row) => ({ start: new Date(row.start * 1000).toISOString(), requests: row.requests, failed: row.failed, p50_ms: row.p50_ms, p95_ms: row.p95_ms, p99_ms: row.p99_ms }));
  const last = rows.at(-1);
  const label = `P50 ${ms(last.p50_ms)}, P95 ${ms(last.p95_ms)}, P99 ${ms(last.p99_ms)} at the end of the range`;
  choosable(panel.draw(figures, (width) => option(rows, data, width), label));
  const { far } = targets(rows, data);
  panel.explain([...far.map((name) => ["", `SLO ${name.toUpperCase()} ${ms(data.slo[`${name}_ms`])}: above the chart`]), ...key(data)]);
}

const FAR = 3; // times the slowest point: a target beyond it would leave the points no room

/** The targets that the chart has room for, in milliseconds, and the names of the others. */
function targets(rows, data) {
  const highest = Math.max(...rows.flatMap((row) => NAMES.map((name) => row[`${name}_ms`] ?? 0)));
  const near = (name) => data.slo[`${name}_ms`] <= FAR * highest;
  const named = NAMES.filter((name) => data.slo?.[`${name}_ms`]);
  return { near: named.filter(near).map((name) => data.slo[`${name}_ms`]), far: named.filter((name) => !near(name)) };
}

function option(rows, data, width) {
  const byStart = new Map(rows.map((row) => [row.start * 1000, row]));
  return overTime(data, width, {
    tallest: Math.max(0, ...targets(rows, data).near),
    legend: { data: NAMES.map((name) => name.toUpperCase()) },
    unit: "ms",
    tell: (at) => {
      const row = byStart.get(at);
      if (!row) return null;
      const lines = NAMES.map((name) => `${name.toUpperCase()}  ${row[`${name}_ms`] === null ? "a failed request" : ms(row[`${name}_ms`])}`);
      return [...lines, `${count(row.requests)} requests, ${count(row.failed)} failed`];
    },
    series: NAMES.map((name) => line(name, rows, data)),
  });
}

function line(name, rows, data) {
  const target = data.slo?.[`${name}_ms`];
  const own = colour(`--${name}`);
  return {
    name: name.toUpperCase(), type: "line", symbol: "circle", symbolSize: 4, showSymbol: rows.length <= 60,
    color: own, lineStyle: { width: name === "p99" ? 2 : 1.5 }, data: points(rows, data.step_s, (row) => row[`${name}_ms`]),
    markLine: target ? {
      silent: true, symbol: "none", lineStyle: { color: own, type: "dashed", width: 1.2 },
      label: { formatter: `SLO ${name.toUpperCase()} ${ms(target)}`, position: "insideStartTop", color: own, fontSize: 10 },
      data: [{ yAxis: target }],
    } : undefined,
  };
}
