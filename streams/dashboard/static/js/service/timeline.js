// What charts over time have in common: the axis, what happened behind, and choosing a range.

import { colour } from "../chart.js";
import { count, signedPct, time } from "../format.js";
import { setLook } from "../look.js";

const NS = 1e6;

export function kind(data) {
  const spanS = data.until_s - data.since_s;
  if (spanS <= 1800) return "second";
  return spanS <= 172_800 ? "minute" : "day";
}

export const deployed = (one) => `${one.kind === "scale_up" ? "scale-up" : "deploy"} ${one.version}`.trim();

const timeAxis = (data) => ({
  type: "time", min: data.since_s * 1000, max: data.until_s * 1000,
  axisLabel: { formatter: (at) => time(at, kind(data)) }, splitLine: { show: false },
});

/** Spans and moments to lay behind a chart, in milliseconds, with what they are. */
export function behind(data) {
  const { deploys, cold, suspected, anomalies, alerts } = data.happenings;
  const windows = cold.map((one) => [one.start_ns / NS, one.end_ns / NS, `cold after ${deployed(one)}`]);
  const odd = (anomalies ?? []).map((one) => [one.onset_s * 1000, (one.ended_s ?? data.until_s) * 1000, `regression of ${one.stage}${one.effect_pct === null ? "" : ` ${signedPct(one.effect_pct)}`}`]);
  const moments = [
    ...deploys.map((one) => [one.at_ns / NS, deployed(one), "--link"]),
    ...(suspected ?? []).map((one) => [one.at_ms, `cold start of ${one.instance}`, "--link"]),
    ...alerts.filter((one) => one.after === "firing").map((one) => [one.at_ms, `${one.alert} fires`, "--bad"]),
  ];
  return { windows, odd, moments: moments.filter(([at]) => at >= data.since_s * 1000 && at < data.until_s * 1000) };
}

const short = (text, length = 24) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

const NAME_PX = 90; // a name above a chart
const AROUND_PX = 90; // what axes take of its width

/** A series that carries the bands and the lines of what happened, and makes room for `tallest`. */
function behindSeries(data, width, tallest) {
  const { windows, odd, moments } = behind(data);
  const area = (one, name) => [
    { xAxis: Math.max(one[0], data.since_s * 1000), name: "", itemStyle: { color: colour(name) } },
    { xAxis: Math.min(one[1], data.until_s * 1000) },
  ];
  const inside = moments.sort((a, b) => a[0] - b[0]);
  // A name that would lie on the one before is left out; the table of what happened has all.
  const apartMs = (NAME_PX / Math.max(width - AROUND_PX, NAME_PX)) * (data.until_s - data.since_s) * 1000;
  let named = -Infinity;
  const label = ([at, text]) => {
    if (at - named < apartMs) return "";
    named = at;
    return short(text);
  };
  // A name near an edge lies inside of it.
  const align = (at) => at - data.since_s * 1000 < apartMs / 2 ? "left" : data.until_s * 1000 - at < apartMs / 2 ? "right" : "center";
  return {
    type: "line", symbol: "none", data: tallest ? [[data.since_s * 1000, tallest]] : [], silent: true, tooltip: { show: false },
    markArea: { silent: true, data: [...windows.map((one) => area(one, "--cold")), ...odd.map((one) => area(one, "--anomaly"))] },
    markLine: {
      silent: true, symbol: "none", lineStyle: { type: "solid", width: 1 },
      label: { fontSize: 10, rotate: 0, position: "end", distance: [0, 2], color: colour("--soft") },
      data: inside.map(([at, text, name]) => ({ xAxis: at, lineStyle: { color: colour(name) }, label: { formatter: label([at, text]), align: align(at) } })),
    },
  };
}

/** Let a range be chosen by drawing over a chart, where there is a mouse. */
export function choosable(chart) {
  if (!matchMedia("(pointer: fine)").matches) return;
  chart.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption: { brushType: "lineX", brushMode: "single" } });
  chart.off("brushEnd");
  chart.on("brushEnd", ({ areas }) => {
    const range = areas[0]?.coordRange;
    if (!range) return;
    chart.dispatchAction({ type: "brush", areas: [] });
    const [from, to] = range.map((at) => Math.round(at / 1000));
    if (to > from) setLook({ last: null, from, to });
  });
}

const BRUSH = {
  toolbox: { show: false }, brush: { xAxisIndex: 0, toolbox: ["clear"], brushStyle: { borderWidth: 1 } },
};

/** Points with a gap where nothing came. */
export function points(rows, stepS, value) {
  const found = [];
  rows.forEach((row, at) => {
    if (at && row.start - rows[at - 1].start > stepS) found.push([rows[at - 1].start * 1000 + 1, null]);
    found.push([row.start * 1000, value(row)]);
  });
  return found;
}

/** What bands and lines stand for, of those that a chart of the range has. */
export function key(data) {
  const { windows, odd, moments } = behind(data);
  const seen = new Set(moments.map(([, , name]) => name));
  return [
    windows.length && ["cold", "cold window after a deploy"], odd.length && ["anomaly", "regression"],
    seen.has("--link") && ["deploy", "deploy or cold start"], seen.has("--bad") && ["alert", "alert fires"],
  ].filter(Boolean);
}

/** What lies behind a point: the spans that it is in, and the moments that it holds. */
function meanwhile(data, at) {
  const until = at + data.step_s * 1000;
  const { windows, odd, moments } = behind(data);
  return [...windows, ...odd].filter(([from, to]) => from < until && to > at).map(([, , text]) => text)
    .concat(moments.filter(([moment]) => moment >= at && moment < until).map(([, text]) => text))
    .slice(0, 6).map((text) => `· ${short(text, 60)}`);
}

/**
 * A chart over time, so many pixels wide; `tell` returns lines about a moment, or nothing where
 * there is none, and the axis reaches up to `tallest` at least.
 */
export function overTime(data, width, { legend, unit, tallest, tell, series }) {
  return {
    ...BRUSH,
    legend,
    grid: { left: 20, right: 30, top: 34, bottom: 4, containLabel: true },
    xAxis: timeAxis(data),
    yAxis: { type: "value", min: 0, ...(unit && { axisLabel: { formatter: (value) => `${count(value)} ${unit}` } }) },
    tooltip: {
      trigger: "axis",
      formatter: (shown) => {
        const at = shown[0].axisValue;
        const lines = tell(at);
        return lines ? [time(at), ...lines, ...meanwhile(data, at)].join("\n") : "";
      },
    },
    series: [...series, behindSeries(data, width, tallest)],
  };
}
