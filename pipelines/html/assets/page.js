"use strict";
const charts = JSON.parse(document.getElementById("charts").textContent);
const root = document.documentElement;

// "@forecast/20" is the colour named forecast of the page's present dress, with 20 per cent of opacity.
function dressed(value, styles) {
  if (Array.isArray(value)) return value.map((v) => dressed(v, styles));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, dressed(v, styles)]));
  }
  const name = typeof value === "string" && /^@([a-z]+)(?:\/(\d+))?$/.exec(value);
  if (!name) return value;
  const hex = styles.getPropertyValue("--" + name[1]).trim();
  if (name[2] === undefined) return hex;
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${name[2] / 100})`;
}

function draw(holder) {
  const styles = getComputedStyle(root);
  const { data, layout } = structuredClone(charts[holder.dataset.chart]);
  layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
  layout.font = { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: "@text" };
  layout.hoverlabel = { bgcolor: "@panel", bordercolor: "@edge", font: { color: "@text" } };
  layout.height = Number(holder.dataset.height);
  for (const key of Object.keys(layout).filter((k) => /^[xy]axis/.test(k))) {
    Object.assign(layout[key], { gridcolor: "@grid", linecolor: "@edge", zerolinecolor: "@edge", tickfont: { color: "@muted" } });
  }
  const names = data.filter((t) => t.showlegend !== false && t.name).map((t) => 48 + 6.4 * t.name.length);
  const room = 0.92 * holder.clientWidth; // a legend that needs several rows sets its entries in columns of one width
  const columns = Math.max(1, Math.floor(room / Math.max(...names)));
  const lines = names.reduce((a, b) => a + b, 0) <= room ? 1 : Math.ceil(names.length / columns);
  if (layout.showlegend !== false) {
    layout.margin.t = 38 + 20 * lines;
    layout.height += 20 * (lines - 1);
  }
  const narrow = holder.clientWidth < 620; // every other label of the time axis has room there
  if (narrow && layout.xaxis.ticktext) layout.xaxis.ticktext = layout.xaxis.ticktext.map((t, i) => (i % 2 ? "" : t));
  const options = { displayModeBar: false, doubleClick: "reset" };
  Plotly.react(holder, dressed(data, styles), dressed(layout, styles), options);
}

function drawAll() {
  document.querySelectorAll(".chart").forEach(draw);
}

function dress(theme) {
  root.dataset.theme = theme;
  drawAll();
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => dress(dark.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => dress(root.dataset.theme === "dark" ? "light" : "dark"));
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) drawAll(); // labels and legends that fit the old width
  width = innerWidth;
});

document.querySelectorAll("[data-show]").forEach((button) => {
  button.addEventListener("click", () => {
    const holder = document.getElementById(button.dataset.in);
    holder.dataset.chart = button.dataset.show;
    document.querySelectorAll(`[data-in="${button.dataset.in}"]`).forEach((b) => b.setAttribute("aria-pressed", b === button));
    draw(holder);
  });
});

const holds = document.getElementById("holds");
const search = document.getElementById("search");
function filter() {
  const words = search.value.toLowerCase();
  document.querySelectorAll("#decisions tbody tr").forEach((row) => {
    const kept = row.className !== "hold" || holds.getAttribute("aria-pressed") === "true";
    row.hidden = !kept || !row.textContent.toLowerCase().includes(words);
  });
}
if (holds) {
  holds.addEventListener("click", () => {
    holds.setAttribute("aria-pressed", holds.getAttribute("aria-pressed") !== "true");
    filter();
  });
  search.addEventListener("input", filter);
}

dress(dark.matches ? "dark" : "light");
