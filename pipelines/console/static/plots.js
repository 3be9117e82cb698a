// Lines over time, drawn with uPlot in the colours of the page's theme.

// Columns of a history, as the server sends them.
const FIELDS = ["time", "arrival_rps", "executors", "target", "capacity_rps", "lag_records", "latency_s"];
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const tinted = (name, percent) => `color-mix(in srgb, ${color(name)} ${percent}%, transparent)`;
const stepped = () => uPlot.paths.stepped({ align: 1 });
const short = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 4 }));

// History and fan over one row of times. A fan is drawn from now on, as far ahead as half of what lies behind; each of
// its steps has one value until the next one begins.
function joined(columns, fan, ahead_s) {
  const [times, ...values] = columns;
  const last = times.at(-1);
  const end = last + ahead_s;
  const steps = [];
  for (let step = 0; fan && step + 1 < fan.times.length; step++) {
    if (fan.times[step + 1] > last && fan.times[step] < end) steps.push([Math.max(fan.times[step], last + 0.01), step]);
  }
  if (steps.length) {
    const step = steps.at(-1)[1];
    steps.push([Math.min(fan.times[step + 1], end), step]);
  }
  return {
    times: [...times, ...steps.map(([time]) => time)],
    values: values.map((column) => [...column, ...steps.map(() => null)]),
    bands: (fan?.levels ?? []).map((_, level) => [...times.map(() => null), ...steps.map(([, step]) => fan.quantiles[level][step])]),
  };
}

function line(label, name, more = {}) {
  return { label, stroke: color(name), width: 1.6, points: { show: false }, value: (_, value) => (value === null ? "" : short(value)), ...more };
}

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]; // between the marks of an axis that counts executors

function axes(counts) {
  const common = { stroke: color("muted"), grid: { stroke: color("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const time = (at, every_s) => new Date(1000 * at).toLocaleTimeString("en-GB").slice(0, every_s < 60 ? 8 : 5);
  return [
    { ...common, size: 30, values: (_, times, __, ___, every_s) => times.map((at) => time(at, every_s)), space: 70 },
    { ...common, size: 52, space: 26, values: (_, values) => values.map(short), ...(counts ? { incrs: WHOLE } : {}) },
  ];
}

function chart(holder, series, height, more = {}) {
  const time = { label: "at", value: (_, at) => (at === null ? "" : new Date(1000 * at).toLocaleTimeString("en-GB")) };
  const { bands = [], counts = false } = more;
  return new uPlot(
    {
      width: holder.clientWidth, height, series: [time, ...series], bands, axes: axes(counts), pxAlign: 0,
      scales: { x: { time: true }, y: { range: (_, __, most) => [0, most > 0 ? 1.08 * most : 1] } },
      cursor: { sync: { key: "console" }, drag: { x: false, y: false } },
    },
    [[], ...series.map(() => [])], holder,
  );
}

// The three plots of a job's page. `draw(columns, fan, target, ahead_s)` shows values.
export function makePlots() {
  const holders = Object.fromEntries(["load", "executors", "latency"].map((name) => [name, document.getElementById(name)]));
  const made = {};
  let levels = [];
  let shown = null;

  function build() {
    for (const plot of Object.values(made)) plot.destroy();
    const middle = Math.floor(levels.length / 2);
    const fan = levels.map((level, i) => line("forecast", "forecast", {
      paths: stepped(), width: i === middle ? 1.6 : 0, dash: [5, 4], class: i === middle ? "middle" : "quiet",
    }));
    const bands = levels.slice(1).map((_, i) => ({ series: [4 + i, 3 + i], fill: tinted("forecast", 12 + 12 * Math.min(i, levels.length - 2 - i)) }));
    const sustained = line("sustained by those there", "capacity", { paths: stepped() });
    made.load = chart(holders.load, [line("arrivals", "arrival"), sustained, ...fan], 250, { bands });
    made.executors = chart(holders.executors, [
      line("there", "executors", { paths: stepped(), fill: tinted("executors", 14) }),
      line("asked for", "capacity", { paths: stepped(), dash: [5, 3] }),
    ], 150, { counts: true });
    made.latency = chart(holders.latency, [
      line("latency", "other", { spanGaps: true }), line("promised", "bad", { dash: [4, 4] }),
    ], 150);
  }

  function draw(columns, fan, target, ahead_s) {
    const wanted = fan ? fan.levels : [];
    if (!made.load || wanted.join() !== levels.join()) {
      levels = wanted;
      build();
    }
    shown = [columns, fan, target, ahead_s];
    const { times, values, bands } = joined(columns, fan, ahead_s);
    const of = (name) => values[FIELDS.indexOf(name) - 1];
    made.load.setData([times, of("arrival_rps"), of("capacity_rps"), ...bands]);
    made.executors.setData([times, of("executors"), of("target")]);
    made.latency.setData([times, of("latency_s"), times.map(() => target)]);
  }

  addEventListener("theme", () => {
    if (!shown) return;
    build();
    draw(...shown);
  });
  new ResizeObserver(() => {
    for (const [name, plot] of Object.entries(made)) plot.setSize({ width: holders[name].clientWidth, height: plot.height });
  }).observe(holders.load);
  return draw;
}
