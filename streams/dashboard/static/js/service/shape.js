// Latency against the shape of the input, with the fitted line.

import { colour } from "../chart.js";
import { make, name } from "../dom.js";
import { count, number, signedPct, time } from "../format.js";
import { query, setLook } from "../look.js";

const short = (text) => text.length > 40 ? `${text.slice(0, 39)}…` : text;

export function shape(panel, analysis, happenings) {
  const fits = analysis.shape.filter((row) => row.r2 !== null);
  const place = panel.element.querySelector(".extra");
  if (!fits.length) {
    place.replaceChildren();
    return panel.say(analysis.verdict === "no_data" ? "No request of this choice in this range." : "Not measured: the records carry no input shape that varies, such as input_tokens.");
  }
  const fit = chosen(fits, analysis.tail_driver?.stage);
  const points = analysis.sample.filter((one) => fit.covariate in one.shape && fit.stage in one.stages)
    .map((one) => [one.shape[fit.covariate], one.stages[fit.stage], one.id]);
  panel.note(`${points.length} sampled requests, and the fit over ${count(fit.n)}`);
  const focus = place.contains(document.activeElement) ? document.activeElement.id : "";
  place.replaceChildren(choices(fits, fit), make("p", { class: "soft" }, state(fit), " ", model(fit, happenings)));
  if (focus) document.getElementById(focus)?.focus();
  if (!points.length) return panel.say("No sampled request carries both.");
  const figures = points.map(([x, y, id]) => ({ request: id, [fit.covariate]: x, [`${fit.stage}_ms`]: y }));
  panel.draw(figures, () => option(points, fit), `${short(fit.stage)} against ${short(fit.covariate)}, r² ${number(fit.r2)}`);
}

/** The fit that the address names; else the best of the tail driver, or of the total. */
function chosen(fits, driver) {
  const asked = query();
  const named = fits.find((row) => row.stage === asked.get("stage") && row.covariate === asked.get("input"));
  const best = (rows) => rows.reduce((a, b) => (a && a.r2 >= b.r2 ? a : b), null);
  return named ?? best(fits.filter((row) => row.stage === driver)) ?? best(fits.filter((row) => row.stage === "total")) ?? best(fits);
}

function choices(fits, fit) {
  const select = (id, label, values, now, choose) => make("label", { class: "choice" }, make("span", {}, label),
    make("select", { id, on: { change: (event) => choose(event.target.value) } },
      values.map((value) => make("option", { value, selected: value === now }, short(value)))));
  const stages = [...new Set(fits.map((row) => row.stage))];
  const inputs = fits.filter((row) => row.stage === fit.stage).map((row) => row.covariate);
  return make("div", { class: "bar tight" },
    select("shape-stage", "Stage", stages, fit.stage, (stage) => {
      const has = fits.filter((row) => row.stage === stage).map((row) => row.covariate);
      setLook({ stage, input: has.includes(fit.covariate) ? fit.covariate : has[0] });
    }),
    select("shape-input", "Input", inputs, fit.covariate, (input) => setLook({ stage: fit.stage, input })));
}

function state(fit) {
  const said = fit.r2 >= 0.5 ? "The input explains most of it" : fit.r2 >= 0.1 ? "The input explains a part of it" : "The input does not explain it";
  const bounds = fit.slope_interval_ms ? ` (${number(fit.slope_interval_ms[0])} to ${number(fit.slope_interval_ms[1])})` : "";
  return make("span", {}, `${said}: r² = ${number(fit.r2)}, ${number(fit.slope_ms_per_unit)} ms${bounds} a `, name(fit.unit || fit.covariate, 40), ".");
}

const STATES = {
  learning: "still learning", ready: "as expected for its input", unseen_shape: "an input that was not learnt",
  alarmed: "slower than its input explains", accepted: "slower than before, and accepted",
};

/** Whether the stage is slower than its input explains, over its cohorts. */
function model(fit, happenings) {
  // Models are described now and then; a regression is told at once.
  const regression = happenings?.anomalies?.find((one) => one.stage === fit.stage && one.ended_s === null);
  if (regression) return `Regression: ${STATES.alarmed} since ${time(regression.onset_s * 1000)}, by ${signedPct(regression.effect_pct)}.`;
  const own = (happenings?.models ?? []).filter((row) => row.stage === fit.stage);
  if (!own.length) return "Regression: not measured.";
  const counts = Object.keys(STATES).map((key) => [key, own.filter((row) => row.state === key).length]).filter(([, n]) => n);
  return `Regression: ${counts.map(([key, n]) => `${STATES[key]} in ${n} of ${own.length} cohorts`).join(", ")}.`;
}

function option(points, fit) {
  const xs = points.map((point) => point[0]);
  const ends = [Math.min(...xs), Math.max(...xs)];
  const line = fit.slope_ms_per_unit === null ? [] : ends.map((x) => [x, fit.intercept_ms + fit.slope_ms_per_unit * x]);
  return {
    grid: { left: 8, right: 16, top: 10, bottom: 22, containLabel: true },
    xAxis: { type: "value", name: short(fit.covariate), nameLocation: "middle", nameGap: 24, scale: true },
    yAxis: { type: "value", min: 0, axisLabel: { formatter: (value) => `${count(value)} ms` } },
    tooltip: { formatter: ({ value }) => value[2] ? `${value[2].slice(0, 60)}\n${number(value[0])}: ${number(value[1])} ms` : "fit" },
    series: [
      { type: "scatter", symbolSize: 5, itemStyle: { color: colour("--s1"), opacity: 0.55 }, data: points },
      { type: "line", symbol: "none", silent: true, lineStyle: { color: colour("--p99"), width: 2 }, data: line },
    ],
  };
}
