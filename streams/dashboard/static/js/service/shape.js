// Latency against the shape of the input, with the fitted line.

import { colour } from "../chart.js";
import { make, name } from "../dom.js";
import { count, number } from "../format.js";

export function shape(panel, analysis) {
  const { stage, covariate, points } = analysis.scatter;
  const fit = analysis.shape.find((row) => row.stage === stage && row.covariate === covariate);
  const place = panel.element.querySelector(".extra");
  place.replaceChildren();
  if (!points.length || !fit) return panel.say(analysis.verdict === "no_data" ? "No request of this choice in this range." : "The records carry no input shape, such as input_tokens.");
  panel.note(`${stage} against ${covariate}, of ${points.length} sampled requests`.slice(0, 140));
  place.replaceChildren(make("p", { class: "soft" }, state(fit)));
  const figures = points.map(([x, y, id]) => ({ request: id, [covariate]: x, [`${stage}_ms`]: y }));
  panel.draw(figures, () => option(points, fit), `${stage} against ${covariate}, r² ${number(fit.r2)}`);
}

function state(fit) {
  if (fit.r2 === null) return make("span", {}, "Not measured: the input does not vary.");
  const said = fit.r2 >= 0.5 ? "The input explains most of it" : fit.r2 >= 0.1 ? "The input explains a part of it" : "The input does not explain it";
  const unit = fit.unit || fit.covariate;
  const bounds = fit.slope_interval_ms ? ` (${number(fit.slope_interval_ms[0])} to ${number(fit.slope_interval_ms[1])})` : "";
  return make("span", {}, `${said}: r² = ${number(fit.r2)}, ${number(fit.slope_ms_per_unit)} ms${bounds} a `, name(unit, 40), `, over ${count(fit.n)} requests.`);
}

function option(points, fit) {
  const xs = points.map((point) => point[0]);
  const ends = [Math.min(...xs), Math.max(...xs)];
  const line = fit.slope_ms_per_unit === null ? [] : ends.map((x) => [x, fit.intercept_ms + fit.slope_ms_per_unit * x]);
  return {
    grid: { left: 8, right: 16, top: 10, bottom: 22, containLabel: true },
    xAxis: { type: "value", name: fit.covariate.slice(0, 40), nameLocation: "middle", nameGap: 24, scale: true },
    yAxis: { type: "value", min: 0, axisLabel: { formatter: "{value} ms" } },
    tooltip: { formatter: ({ value }) => value[2] ? `${value[2].slice(0, 60)}\n${number(value[0])}: ${number(value[1])} ms` : "fit" },
    series: [
      { type: "scatter", symbolSize: 5, itemStyle: { color: colour("--s1"), opacity: 0.55 }, data: points },
      { type: "line", symbol: "none", silent: true, lineStyle: { color: colour("--p99"), width: 2 }, data: line },
    ],
  };
}
