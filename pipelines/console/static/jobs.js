// The page of all jobs: a row for each, the worst first.
import { burn, element, follow, number, rank, seconds, setText, share, up } from "./live.js";

const body = document.querySelector("#jobs tbody");
const filter = document.getElementById("filter");
const mode = document.getElementById("mode");
const troubled = document.getElementById("troubled");
const rows = new Map(); // by job: what is known of it, its row in the table, its cells
let revision = 0;

function makeRow(job) {
  const row = element("tr");
  const cells = {};
  for (const [name, kind] of [
    ["job", ""], ["state", "state"], ["promise", "nowrap"], ["left", "number"], ["burn", "number"], ["executors", "number"],
    ["arrivals", "number"], ["lag", "number"], ["latency", "number"], ["mode", "nowrap"],
  ]) {
    cells[name] = row.appendChild(element(name === "job" ? "th" : "td", "", kind));
  }
  cells.job.scope = "row";
  const link = cells.job.appendChild(element("a", job));
  link.href = `${up}jobs/${encodeURIComponent(job)}`;
  const mark = cells.state.appendChild(element("span", "", "mark"));
  mark.setAttribute("aria-hidden", "true");
  cells.words = cells.state.appendChild(element("span"));
  cells.share = cells.left.appendChild(element("span"));
  cells.bar = cells.left.appendChild(element("span", undefined, "bar-of")).appendChild(element("span"));
  return { row, cells };
}

function draw({ cells, row, known }) {
  row.className = `rank-${rank(known)}`;
  setText(cells.words, known.trouble || "fine");
  setText(cells.promise, known.target_s === null ? "none" : `${share(1 - known.budget, 5)} in ${number(known.target_s)} s`);
  setText(cells.share, share(known.budget_left, 2));
  cells.bar.style.width = `${100 * Math.max(0, Math.min(known.budget_left ?? 0, 1))}%`;
  setText(cells.burn, `${burn(known.burn_long)} / ${burn(known.burn_short)}`);
  const goes = known.target !== null && known.target !== known.executors;
  setText(cells.executors, `${number(known.executors)}${goes ? ` → ${known.target}` : ""}`);
  setText(cells.arrivals, number(known.arrival_rps));
  setText(cells.lag, number(known.lag_records));
  setText(cells.latency, seconds(known.latency_s));
  setText(cells.mode, known.mode ?? known.word?.mode ?? "–");
}

const matches = ({ known }) =>
  (!mode.value || (known.mode ?? known.word?.mode) === mode.value) &&
  (!troubled.checked || known.rank > 0) &&
  filter.value.toLowerCase().split(/\s+/).every((word) => `${known.job} ${known.trouble}`.toLowerCase().includes(word));

// Of jobs in equal trouble the one that has least left, in whole per cent, so that rows seldom change places.
const left = ({ known }) => (known.rank ? Math.round(100 * (known.budget_left ?? 1)) : 0);
const worse = (a, b) => b.known.rank - a.known.rank || left(a) - left(b) || a.known.job.localeCompare(b.known.job);

function arrange() {
  const all = [...rows.values()].sort(worse);
  let shown = 0;
  for (const one of all) {
    one.row.hidden = !matches(one);
    shown += !one.row.hidden;
    if (!one.row.isConnected) body.append(one.row);
  }
  // Rows do not move while somebody points at one or has come to one by keyboard.
  if (!body.matches(":hover, :focus-within")) {
    all.forEach((one, place) => {
      if (body.children[place] !== one.row) body.insertBefore(one.row, body.children[place] ?? null);
    });
  }
  const trouble = all.filter(({ known }) => known.rank > 0).length;
  setText(document.getElementById("counts"), `${number(all.length)} ${all.length === 1 ? "job" : "jobs"}, ${trouble} in trouble${shown < all.length ? `, ${number(shown)} shown` : ""}`);
  document.getElementById("none").hidden = shown > 0 || all.length === 0;
}

function take(values) {
  revision = values.revision;
  for (const known of values.rows) {
    const one = rows.get(known.job) ?? makeRow(known.job);
    rows.set(known.job, one);
    one.known = known;
    draw(one);
  }
  arrange();
  document.body.dataset.ready = "true";
}

document.getElementById("search").addEventListener("submit", (event) => event.preventDefault());
for (const [control, event] of [[filter, "input"], [mode, "change"], [troubled, "change"]]) control.addEventListener(event, arrange);
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select")) {
    event.preventDefault();
    filter.focus();
  }
  if (event.key === "Escape" && event.target === filter) {
    filter.value = "";
    arrange();
  }
});
follow(() => `data/jobs?since=${revision}`, take);
