// What slow requests spend their time on, stacked over time.

import { colour, stageColour } from "../chart.js";
import { count, ms } from "../format.js";
import { choosable, key, overTime, points } from "./timeline.js";

/** Stages in the order in which they are coloured everywhere. */
export function order(data) {
  const names = [...new Set(data.stages.map((row) => row.stage))].filter((name) => name !== "total");
  return names.sort((a, b) => (a === "unattributed") - (b === "unattributed") || a.localeCompare(b));
}

export function stages(panel, data, analysis) {
  // A container holds other stages: stacked on them it would count twice.
  const containers = new Set((analysis?.stages ?? []).filter((row) => row.role === "container").map((row) => row.stage));
  const names = order(data).filter((name) => !containers.has(name));
  if (!names.length) return panel.say(data.percentiles.length ? "The records name no stage." : "No request of this choice in this range.");
  const starts = new Map();
  for (const row of data.stages) {
    if (!starts.has(row.start)) starts.set(row.start, { start: row.start, slow_n: row.slow_n });
    starts.get(row.start)[row.stage] = row.mean_ms;
  }
  const rows = [...starts.values()];
  const left = containers.size ? ` Left out, for they hold others: ${[...containers].join(", ").slice(0, 80)}.` : "";
  panel.note(`Mean of each stage over requests from P95 to P99.${left}`);
  const figures = rows.map(({ start, ...rest }) => ({ start: new Date(start * 1000).toISOString(), ...rest }));
  const label = `Stacked means of ${names.join(", ")} over slow requests`.slice(0, 300);
  choosable(panel.draw(figures, (width) => option(names, rows, data, width), label));
  panel.explain(key(data));
}

function option(names, rows, data, width) {
  const byStart = new Map(rows.map((row) => [row.start * 1000, row]));
  const all = order(data);
  return overTime(data, width, {
    legend: { data: names, formatter: (text) => text.length > 18 ? `${text.slice(0, 17)}…` : text },
    unit: "ms",
    tell: (at) => {
      const row = byStart.get(at);
      if (!row) return null;
      const sorted = [...names].sort((a, b) => (row[b] ?? 0) - (row[a] ?? 0));
      const lines = sorted.map((name) => `${name.slice(0, 40)}  ${ms(row[name])}`);
      return [...lines, `${count(row.slow_n)} slow requests`];
    },
    series: names.map((name) => ({
      name, type: "line", stack: "all", symbol: "none", lineStyle: { width: 0.8 }, areaStyle: { opacity: 0.75 },
      color: name === "unattributed" ? colour("--s8") : stageColour(all.indexOf(name)),
      data: points(rows, data.step_s, (row) => row[name] ?? 0),
    })),
  });
}
