// The heat map: how many requests took how long, when.

import { colour } from "../chart.js";
import { count, number, time } from "../format.js";
import { behind, key, kind } from "./timeline.js";

export function heat(panel, data) {
  const cells = data.heat;
  if (!cells.length) return panel.say("No successful request of this choice in this range.");
  panel.note("Log scale; darker or brighter is more requests. Successful requests alone.");
  const edge = (band) => data.least_ms * 2 ** (band / data.bands_an_octave);
  const figures = cells.map((cell) => ({ start: new Date(cell.start * 1000).toISOString(), from_ms: edge(cell.band), to_ms: edge(cell.band + 1), requests: cell.requests }));
  panel.draw(figures, () => option(data, edge), `Requests by time and latency, ${number(edge(Math.min(...cells.map((cell) => cell.band))))} ms to ${number(edge(1 + Math.max(...cells.map((cell) => cell.band))))} ms`);
  panel.explain(key(data));
}

function option(data, edge) {
  const cells = data.heat;
  const bands = cells.map((cell) => cell.band);
  const low = Math.min(...bands);
  const high = Math.max(...bands);
  const first = Math.floor(data.since_s / data.step_s) * data.step_s;
  const steps = Math.max(Math.ceil((data.until_s - first) / data.step_s), 1);
  const starts = Array.from({ length: steps }, (_, at) => (first + at * data.step_s) * 1000);
  const column = (atMs) => Math.min(Math.max(Math.floor((atMs / 1000 - first) / data.step_s), 0), steps - 1);
  const { windows, odd, moments } = behind(data);
  // As a frame: a band of colour would be taken for requests.
  const area = (one, name) => [{ xAxis: column(one[0]), itemStyle: { color: "transparent", borderColor: colour(name), borderWidth: 2 } }, { xAxis: column(one[1]) }];
  const most = Math.max(...cells.map((cell) => cell.requests));
  return {
    grid: { left: 8, right: 12, top: 8, bottom: 40, containLabel: true },
    xAxis: { type: "category", data: starts, axisLabel: { formatter: (at) => time(at, kind(data)) }, splitLine: { show: false } },
    yAxis: { type: "category", data: Array.from({ length: high - low + 1 }, (_, at) => low + at), splitLine: { show: false },
      axisLabel: { formatter: (band) => `${number(edge(Number(band)))} ms`, interval: Math.max(Math.floor((high - low) / 8), 0) } },
    tooltip: {
      formatter: ({ value }) => Array.isArray(value) ? [time(starts[value[0]]), `${number(edge(low + value[1]))} to ${number(edge(low + value[1] + 1))} ms`, `${count(Math.round(10 ** value[2]))} requests`].join("\n") : "",
    },
    visualMap: {
      min: 0, max: Math.max(Math.log10(most), 0.1), calculable: false, orient: "horizontal", left: "center", bottom: 0, itemHeight: 90, itemWidth: 10,
      text: [`${count(most)} requests`, "1"], textStyle: { color: colour("--soft") },
      inRange: { color: ["--heat0", "--heat1", "--heat2", "--heat3"].map(colour) },
    },
    series: [{
      type: "heatmap", progressive: 0,
      data: cells.map((cell) => [column(cell.start * 1000), cell.band - low, Math.log10(cell.requests)]),
      markArea: { silent: true, data: [...windows.map((one) => area(one, "--cold-line")), ...odd.map((one) => area(one, "--anomaly-line"))] },
      markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { type: "solid", width: 1 },
        data: moments.map(([at, , name]) => ({ xAxis: column(at), lineStyle: { color: colour(name) } })) },
    }],
  };
}
