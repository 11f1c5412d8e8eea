// From a fast request to a slow one, stage by stage.

import { colour } from "../chart.js";
import { count, ms, signedMs } from "../format.js";

export function waterfall(panel, analysis) {
  const parts = analysis.stages.filter((row) => (row.role === "stage" || row.role === "unattributed") && row.delta_ms !== null);
  if (!parts.length) return panel.say(analysis.verdict === "no_data" ? "No request of this choice in this range." : "Too few requests with stages to compare.");
  parts.sort((a, b) => b.delta_ms - a.delta_ms);
  const driver = analysis.tail_driver?.stage;
  panel.note(driver ? `The tail driver is ${driver.slice(0, 60)}: ${signedMs(analysis.tail_driver.delta_ms)} in slow requests.` : "No stage drives the tail.");
  const figures = parts.map((row) => ({ stage: row.stage, mean_fast_ms: row.mean_fast_ms, mean_slow_ms: row.mean_slow_ms, delta_ms: row.delta_ms, low_ms: row.delta_interval_ms?.[0] ?? null, high_ms: row.delta_interval_ms?.[1] ?? null, tail_share_pct: row.tail_share_pct }));
  panel.draw(figures, () => option(parts), `Slow less fast by stage: ${parts.slice(0, 3).map((row) => `${row.stage.slice(0, 60)} ${signedMs(row.delta_ms)}`).join(", ")}`);
}

function option(parts) {
  const fast = parts.reduce((sum, row) => sum + (row.mean_fast_ms ?? 0), 0);
  const bars = [{ name: "fast requests", from: 0, by: fast, total: true }];
  let at = fast;
  for (const row of parts) {
    bars.push({ name: row.stage, from: at, by: row.delta_ms });
    at += row.delta_ms;
  }
  bars.push({ name: "slow requests", from: 0, by: at, total: true });
  const tint = (bar) => colour(bar.total ? "--s1" : bar.by >= 0 ? "--p99" : "--p50");
  return {
    grid: { left: 8, right: 78, top: 6, bottom: 4, containLabel: true },
    xAxis: { type: "value", min: 0, axisLabel: { formatter: (value) => `${count(value)} ms` } },
    yAxis: { type: "category", inverse: true, data: bars.map((bar) => bar.name), splitLine: { show: false }, axisLabel: { width: 130, overflow: "truncate" } },
    tooltip: { formatter: ({ dataIndex }) => `${bars[dataIndex].name.slice(0, 60)}\n${bars[dataIndex].total ? ms(bars[dataIndex].by) : signedMs(bars[dataIndex].by)}` },
    series: [
      { type: "bar", stack: "all", silent: true, itemStyle: { color: "transparent" }, data: bars.map((bar) => Math.min(bar.from, bar.from + bar.by)) },
      { type: "bar", stack: "all", barMaxWidth: 22, data: bars.map((bar) => ({ value: Math.abs(bar.by), itemStyle: { color: tint(bar) } })),
        label: { show: true, position: "right", color: colour("--text"), formatter: ({ dataIndex }) => bars[dataIndex].total ? ms(bars[dataIndex].by) : signedMs(bars[dataIndex].by) } },
    ],
  };
}
