// Charts by ECharts, in the colours of the page.

import * as echarts from "/static/vendor/echarts-6.1.0.esm.min.js";

const charts = new Map();
const probe = document.createElement("i");
probe.hidden = true;
document.documentElement.append(probe);

/** A colour of the style sheet, such as "--p99", as it is in the theme that is shown. */
export function colour(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export const stageColour = (at) => colour(`--s${(at % 8) + 1}`);

function base(option) {
  const text = colour("--text");
  const soft = colour("--soft");
  const line = colour("--line");
  const axis = {
    axisLine: { lineStyle: { color: line } }, axisTick: { show: false },
    axisLabel: { color: soft, hideOverlap: true }, splitLine: { lineStyle: { color: line, opacity: 0.6 } },
    nameTextStyle: { color: soft },
  };
  const filled = (one) => ({ ...axis, ...one, axisLabel: { ...axis.axisLabel, ...one?.axisLabel } });
  return {
    animation: false,
    textStyle: { color: text, fontFamily: getComputedStyle(document.body).fontFamily },
    ...option,
    // Rich text is drawn on the canvas: a name is never read as markup.
    tooltip: {
      renderMode: "richText", confine: true, backgroundColor: colour("--panel"), borderColor: line,
      textStyle: { color: text, fontSize: 12 }, ...option.tooltip,
    },
    legend: option.legend && { textStyle: { color: text }, itemHeight: 9, itemWidth: 16, type: "scroll",
      pageIconColor: text, pageTextStyle: { color: soft }, top: 0, ...option.legend },
    xAxis: option.xAxis && filled(option.xAxis),
    yAxis: option.yAxis && filled(option.yAxis),
  };
}

/** Draw; `build` makes the option for a width, and anew whenever the colours change. */
export function draw(element, build, label) {
  let kept = charts.get(element);
  if (!kept) {
    kept = { chart: echarts.init(element, null, { renderer: "canvas" }) };
    charts.set(element, kept);
    new ResizeObserver(() => {
      if (element.clientWidth) kept.chart.resize();
    }).observe(element);
  }
  kept.build = build;
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label);
  kept.chart.setOption(base(build(element.clientWidth)), { notMerge: true });
  return kept.chart;
}

export function recolour() {
  for (const [element, { chart, build }] of charts) chart.setOption(base(build(element.clientWidth)), { notMerge: true });
}

/** A chart as an address of PNG, of pixels so much smaller; none where none was drawn. */
export function picture(element, scale) {
  return charts.get(element)?.chart.getDataURL({ pixelRatio: scale, backgroundColor: colour("--panel") });
}

/** A small line without axes. */
export function spark(element, points, target) {
  draw(element, () => ({
    grid: { left: 1, right: 1, top: 3, bottom: 3 },
    xAxis: { type: "time", show: false },
    yAxis: { type: "value", show: false, scale: true },
    series: [["--p50", 1], ["--p95", 2], ["--p99", 3]].map(([name, at]) => ({
      type: "line", symbol: "none", silent: true, lineStyle: { color: colour(name), width: at === 3 ? 1.8 : 1.1 },
      data: points.map((point) => [point[0], point[at]]),
      markLine: at === 3 && target ? { silent: true, symbol: "none", label: { show: false },
        lineStyle: { color: colour("--p99"), type: "dashed", width: 1 }, data: [{ yAxis: target }] } : undefined,
    })),
  }), "P50, P95 and P99 of the last minutes");
}
