// A panel as a picture, with its title and all its rows: the browser draws a copy of it.

import { picture } from "./chart.js";
import { make } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const CHARTS = ".chart, .spark";
const SCALE = 2;
const LONGEST = 16_000; // pixels that canvases of all browsers have

// What XML cannot hold, though a name may.
const UNFIT = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/** The address of a PNG of an element. */
export async function pictureOf(element) {
  const styles = await (await fetch("/static/page.css")).text();
  const { copy, width, height } = copied(element);
  const drawn = await loaded(`data:image/svg+xml,${encodeURIComponent(framed(copy, styles, width, height))}`);
  const canvas = document.createElement("canvas");
  const scale = Math.min(SCALE, LONGEST / height);
  [canvas.width, canvas.height] = [width * scale, height * scale];
  const paper = canvas.getContext("2d");
  paper.fillStyle = getComputedStyle(element).backgroundColor;
  paper.fillRect(0, 0, canvas.width, canvas.height);
  paper.drawImage(drawn, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL();
}

/** A copy of an element with all its rows and a line of what it is; its charts are pictures. */
function copied(element) {
  const below = make("p", { class: "soft" }, [document.title, document.getElementById("range")?.textContent].filter(Boolean).join(" · "));
  const charts = [...element.querySelectorAll(CHARTS)];
  const heights = charts.map((chart) => chart.clientHeight);
  charts.forEach((chart, at) => Object.assign(chart.style, { flex: "none", height: `${heights[at]}px` }));
  element.classList.add("pictured");
  element.append(below);
  const { offsetWidth: width, offsetHeight: height } = element;
  const copy = element.cloneNode(true);
  below.remove();
  element.classList.remove("pictured");
  charts.forEach((chart) => Object.assign(chart.style, { flex: "", height: "" }));
  copy.style.height = `${height}px`;
  [...copy.querySelectorAll(CHARTS)].forEach((one, at) => {
    const drawn = charts[at].clientWidth ? picture(charts[at], SCALE) : null;
    one.replaceChildren(...(drawn ? [make("img", { src: drawn, width: charts[at].clientWidth })] : []));
  });
  return { copy, width, height };
}

function framed(copy, styles, width, height) {
  const root = document.createElementNS(SVG, "svg");
  root.setAttribute("width", width);
  root.setAttribute("height", height);
  root.dataset.theme = dark() ? "dark" : "light";
  const style = document.createElementNS(SVG, "style");
  style.textContent = styles;
  const frame = document.createElementNS(SVG, "foreignObject");
  frame.setAttribute("width", "100%");
  frame.setAttribute("height", "100%");
  const body = document.createElement("body");
  body.append(copy);
  frame.append(body);
  root.append(style, frame);
  return new XMLSerializer().serializeToString(root).replace(UNFIT, "").toWellFormed();
}

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function loaded(address) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = () => reject(new Error("the browser does not draw this panel"));
    image.src = address;
  });
}
