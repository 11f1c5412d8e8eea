// How fast the error budget is spent, and what is left of it.

import { colour } from "../chart.js";
import { make, name, table } from "../dom.js";
import { count, number, pct, time } from "../format.js";
import { choosable, key, overTime, points } from "./timeline.js";

export function burn(panel, data) {
  budgets(panel.element.querySelector(".extra"), data);
  const rows = data.missed;
  if (!data.slo) return panel.say("Nothing is promised: set slo of this service to see its burn rate.");
  if (!rows.length) return panel.say(data.percentiles.length ? "Not measured: the records were counted before this SLO was set." : "No request of this choice in this range.");
  panel.note(`1 spends what the SLO allows; ${data.step_s} s a point.`);
  const names = ["p50", "p95", "p99"].filter((one) => rows.some((row) => row.name === one));
  const figures = rows.map((row) => ({ start: new Date(row.start * 1000).toISOString(), percentile: row.name, slo_ms: row.threshold_ms, requests: row.requests, bad: row.bad, burn_rate: row.burn }));
  const now = rows.at(-1);
  choosable(panel.draw(figures, (width) => option(names, rows, data, width), `Burn rate of ${now.name.toUpperCase()} ${number(now.burn)} at the end of the range`));
  panel.explain(key(data));
}

function budgets(place, data) {
  if (!data.budgets?.length) {
    place.replaceChildren(make("p", { class: "soft" }, "Budget left: not measured."));
    return;
  }
  place.replaceChildren(table([
    { name: "Objective", cell: (row) => name(row.objective, 40) },
    { name: "Target", n: true, cell: (row) => pct(row.target_pct) },
    { name: "Left", n: true, cell: (row) => make("span", { class: row.left_pct <= 0 ? "over" : null }, pct(row.left_pct)) },
    { name: "Burn", n: true, cell: (row) => number(row.burn_rate) },
    { name: "Spent by", cell: (row) => row.exhausted_s ? time(row.exhausted_s * 1000) : "–" },
  ], data.budgets, { caption: "Error budgets", stack: false }));
}

function option(names, rows, data, width) {
  const byStart = new Map();
  for (const row of rows) byStart.set(row.start * 1000, [...(byStart.get(row.start * 1000) ?? []), row]);
  return overTime(data, width, {
    tallest: 1,
    legend: { data: names.map((one) => one.toUpperCase()) },
    tell: (at) => byStart.get(at)?.map((row) => `${row.name.toUpperCase()}  ${number(row.burn)}  (${count(row.bad)} of ${count(row.requests)})`),
    series: names.map((one, index) => ({
      name: one.toUpperCase(), type: "line", symbol: "none", color: colour(`--${one}`),
      data: points(rows.filter((row) => row.name === one), data.step_s, (row) => row.burn),
      markLine: index ? undefined : { silent: true, symbol: "none", lineStyle: { color: colour("--soft"), type: "dashed" }, label: { formatter: "what the SLO allows", position: "insideStartTop", color: colour("--soft"), fontSize: 10 }, data: [{ yAxis: 1 }] },
    })),
  });
}
