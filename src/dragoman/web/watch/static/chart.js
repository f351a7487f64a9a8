// A chart as SVG from few points: axes, lines with a band from lowest to highest, a mark across. No library.

const WIDTH = 344, HEIGHT = 172;
const LEFT = 46, RIGHT = 8, TOP = 8, BOTTOM = 22;
const SVG = "http://www.w3.org/2000/svg";

function node(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

function trimmed(value, digits = 3) {
  return String(Number(value.toPrecision(digits)));
}

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let index = 0;
  while (Math.abs(value) >= 999.5 && index < units.length - 1) { value /= 1000; index += 1; }
  return `${trimmed(value)} ${units[index]}`;
}

function time(seconds, longest = seconds) {
  if (longest < 100) return `${trimmed(seconds)} s`;
  if (longest < 7200) return `${trimmed(seconds / 60)} min`;
  return `${trimmed(seconds / 3600)} h`;
}

export function inWords(value, kind) {
  if (kind === "bytes") return `${bytes(value)}/s`;
  if (kind === "seconds") return `${trimmed(value)} s/step`;
  if (kind === "share") return `${Math.round(value * 100)} %`;
  return trimmed(value, 4);
}

function tickText(value, kind) {
  if (kind === "bytes") return bytes(value);
  if (kind === "seconds") return `${trimmed(value)} s`;
  if (kind === "share") return `${Math.round(value * 100)} %`;
  return trimmed(value);
}

function xText(value, unit, last) {
  return unit === "seconds" ? time(value, last) : value >= 10_000 ? `${trimmed(value / 1000)}k` : String(Math.round(value));
}

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) found.push(index * step);
  return found;
}

// Round numbers of the unit that will stand beside them.
function xTicks(to, unit) {
  const size = unit !== "seconds" || to.last < 100 ? 1 : to.last < 7200 ? 60 : 3600;
  return ticks(to.first / size, to.last / size, 4).map((value) => value * size);
}

// One slow first step must not flatten all others: the top is that of nearly all points, not of the highest.
function range(chart) {
  const means = chart.series.flatMap((series) => series.points.map((point) => point[2])).sort((a, b) => a - b);
  let high = means.length > 30 ? means[Math.floor(means.length * 0.985)] : means[means.length - 1];
  let low = chart.kind === "plain" ? means[0] : 0;
  if (chart.kind === "share") high = 1;
  if (chart.mark !== null && chart.mark < high * 3) high = Math.max(high, chart.mark);
  if (chart.kind !== "share") high += (high - low || Math.abs(high) || 1) * 0.12;
  if (chart.kind === "plain") low -= (high - low) * 0.06;
  return [low, high > low ? high : low + 1];
}

function scales(chart) {
  const xs = chart.series.flatMap((series) => series.points.map((point) => point[0]));
  const first = chart.x === "seconds" ? 0 : Math.min(...xs), last = Math.max(...xs);
  const [low, high] = range(chart);
  const span = last - first || 1;
  return {
    first, last: first + span, low, high,
    x: (value) => LEFT + ((value - first) / span) * (WIDTH - LEFT - RIGHT),
    y: (value) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM),
  };
}

function drawAxes(svg, chart, to) {
  for (const value of ticks(to.low, to.high, 4)) {
    const y = to.y(value).toFixed(1);
    node("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }, svg);
    node("text", { x: LEFT - 6, y: Number(y) + 4, "text-anchor": "end" }, svg).textContent = tickText(value, chart.kind);
  }
  for (const value of xTicks(to, chart.x)) {
    const x = to.x(value);
    const anchor = x > WIDTH - RIGHT - 18 ? "end" : "middle";
    node("text", { x: x.toFixed(1), y: HEIGHT - 6, "text-anchor": anchor }, svg).textContent = xText(value, chart.x, to.last);
  }
  node("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }, svg);
}

function path(points, to, column) {
  return points.map((point) => `${to.x(point[0]).toFixed(1)} ${to.y(point[column]).toFixed(1)}`);
}

function drawSeries(plot, series, index, to, withBand) {
  const { points } = series;
  const group = node("g", { class: `s${index}` }, plot);
  if (points.length === 1) {
    node("circle", { class: "dot", r: 3, cx: to.x(points[0][0]), cy: to.y(points[0][2]) }, group);
    return;
  }
  if (withBand && points.some((point) => point[3] > point[1])) {
    const outline = [...path(points, to, 3), ...path(points, to, 1).reverse()];
    node("path", { class: "band", d: `M${outline.join("L")}Z` }, group);
  }
  node("path", { class: "line", d: `M${path(points, to, 2).join("L")}` }, group);
}

function legend(figure, chart) {
  const names = chart.series.length > 1 ? chart.series.map((series, index) => [series.name, `s${index}`]) : [];
  if (chart.mark !== null) names.push([chart.mark_name, "mark"]);
  let list = figure.querySelector(".names");
  if (!list) { list = document.createElement("p"); list.className = "names"; figure.append(list); }
  list.replaceChildren(...names.map(([name, kind]) => {
    const item = document.createElement("span");
    item.className = kind;
    item.textContent = name;
    return item;
  }));
}

function nearest(points, x) {
  return points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best), points[0]);
}

function describe(chart, x) {
  const found = chart.series.filter((series) => series.points.length).map((series) => [series.name, nearest(series.points, x)]);
  const where = chart.x === "seconds" ? `after ${time(found[0][1][0])}` : `step ${Math.round(found[0][1][0]).toLocaleString("en")}`;
  const values = found.map(([name, point]) => `${found.length > 1 ? `${name} ` : ""}${inWords(point[2], chart.kind)}`);
  return `${values.join(", ")} · ${where}`;
}

function readOut(svg, figure, chart, to) {
  const cross = node("line", { class: "cross", y1: TOP, y2: HEIGHT - BOTTOM }, svg);
  const read = figure.querySelector(".read");
  const latest = describe(chart, Infinity === to.last ? 0 : to.last);
  read.textContent = latest;
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * WIDTH;
    const x = to.first + ((place - LEFT) / (WIDTH - LEFT - RIGHT)) * (to.last - to.first);
    const at = Math.min(WIDTH - RIGHT, Math.max(LEFT, place));
    cross.setAttribute("x1", at);
    cross.setAttribute("x2", at);
    cross.style.visibility = "visible";
    read.textContent = describe(chart, x);
  });
  svg.addEventListener("pointerleave", () => { cross.style.visibility = ""; read.textContent = latest; });
  return latest;
}

function emptyFigure(chart) {
  const figure = document.createElement("figure");
  figure.id = chart.key;
  const caption = document.createElement("figcaption");
  for (const [name, kind] of [["b", "title"], ["span", "what"], ["span", "read"]]) {
    const part = document.createElement(name);
    part.className = kind;
    caption.append(part);
  }
  const box = document.createElement("div");
  box.className = "box";
  box.setAttribute("role", "img");
  figure.append(caption, box);
  return figure;
}

function drawChart(figure, chart) {
  figure.querySelector(".title").textContent = chart.title;
  figure.querySelector(".what").textContent = chart.caption;
  const box = figure.querySelector(".box");
  const drawn = { ...chart, series: chart.series.filter((series) => series.points.length) };
  const svg = node("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  const clip = `clip-${chart.key}`;
  node("rect", { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM },
    node("clipPath", { id: clip }, node("defs", {}, svg)));
  const to = scales(drawn);
  drawAxes(svg, drawn, to);
  const plot = node("g", { "clip-path": `url(#${clip})` }, svg);
  if (chart.mark !== null) {
    node("line", { class: "mark", x1: LEFT, x2: WIDTH - RIGHT, y1: to.y(chart.mark), y2: to.y(chart.mark) }, plot);
  }
  drawn.series.forEach((series, index) => drawSeries(plot, series, index, to, drawn.series.length === 1));
  const latest = readOut(svg, figure, drawn, to);
  box.setAttribute("aria-label", `${chart.title}, ${chart.caption}. Latest: ${latest}.`);
  box.replaceChildren(svg);
  legend(figure, drawn);
}

export function drawCharts(parent, charts) {
  const full = charts.filter((chart) => chart.series.some((series) => series.points.length));
  for (const figure of [...parent.children]) {
    if (!full.some((chart) => chart.key === figure.id)) figure.remove();
  }
  for (const chart of full) {
    let figure = document.getElementById(chart.key);
    if (!figure) { figure = emptyFigure(chart); parent.append(figure); }
    if (!figure.matches(":hover")) drawChart(figure, chart);
  }
}
