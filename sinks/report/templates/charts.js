"use strict";
// Draws the figures in the colours of the page; without this the tables say the same.
(() => {
  const charts = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const config = { responsive: true, displayModeBar: false };

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    return { text: of("--text"), line: of("--line"), panel: of("--panel") };
  };

  const axis = ({ line }) => ({ gridcolor: line, linecolor: line, zerolinecolor: line });

  const styled = (layout) => {
    const page = colours();
    const family = getComputedStyle(document.body).fontFamily;
    const themed = {
      height: 340,
      hovermode: "closest",
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      ...layout,
      margin: { l: 60, r: 24, t: 44, b: 60, ...layout.margin },
      font: { color: page.text, family, size: 13 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      hoverlabel: { bgcolor: page.panel, bordercolor: page.line, font: { color: page.text } },
    };
    for (const name of Object.keys(layout).filter((key) => /^[xy]axis/.test(key))) {
      themed[name] = { ...axis(page), automargin: name.startsWith("y"), ...layout[name] };
    }
    return themed;
  };

  const draw = () => {
    for (const { key, figure } of charts) {
      const place = document.getElementById(`chart-${key}`);
      place.closest("figure").hidden = false;
      Plotly.react(place, figure.data, styled(structuredClone(figure.layout)), config);
    }
  };

  draw();
  dark.addEventListener("change", draw);
  window.addEventListener("beforeprint", draw);
  window.addEventListener("afterprint", draw);
})();
