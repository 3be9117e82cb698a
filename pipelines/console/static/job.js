// The page of one job: tiles, lines, decisions; new points are added to those that are here.
import { ago, burn, clock, element, follow, number, rank, replaceOthers, seconds, setText, share, up, utc } from "./live.js";
import { makePlots } from "./plots.js";
import { showMode } from "./switch.js";

const job = document.body.dataset.job;
const KEEP_S = { fine: 600, coarse: 21600 };
const LONGER_S = 60; // by which the history there has to be longer than the one here to be asked for anew
const history = { fine: null, coarse: null };
const draw = makePlots();
let range = "fine";
let latest = null;

// Puts newer columns behind those that are here; the last step of these was open, so it is replaced.
function add(name, columns) {
  const old = history[name];
  if (!old || !columns[0].length) {
    history[name] = old ?? columns;
    return;
  }
  const from = old[0].findLastIndex((time) => time < columns[0][0]) + 1;
  const oldest = columns[0].at(-1) - KEEP_S[name];
  const first = Math.max(0, old[0].findIndex((time) => time >= oldest));
  history[name] = old.map((column, i) => [...column.slice(first, from), ...columns[i]]);
}

function tile(label, value, detail, worry) {
  const made = element("div", undefined, worry ? "tile worry" : "tile");
  made.append(element("div", label, "label"), element("div", value, "value"), element("div", detail, "detail"));
  return made;
}

function tiles(row) {
  const goes = row.target !== null && row.target !== row.executors;
  const late = row.latency_s !== null && row.target_s !== null && row.latency_s > row.target_s;
  return [
    tile("Budget left", share(row.budget_left), row.target_s === null ? "no contract, no promise" : `${share(1 - row.budget, 5)} of the seconds in ${number(row.target_s)} s, over ${number(row.window_days)} d`, row.budget_left !== null && row.budget_left < 0),
    tile("Burn rate", `${burn(row.burn_long)} / ${burn(row.burn_short)}`, "long / short window; 1 spends the budget exactly", row.rank === 4),
    tile("Executors", `${number(row.executors)}${goes ? ` → ${row.target}` : ""}`, row.most === null ? "there" : `${row.least} to ${row.most} allowed`, row.executors !== null && row.executors === row.most),
    tile("Arrivals", number(row.arrival_rps), "records/s", false),
    tile("Lag", number(row.lag_records), "records wait", false),
    tile("Latency", seconds(row.latency_s), "oldest record of the newest batch", late),
  ];
}

function decisionRow(one) {
  const row = element("tr");
  const moved = one.before !== null && one.before !== one.executors;
  row.append(element("td", clock(one.at), "nowrap"));
  row.append(element("td", moved ? `${one.before} → ${one.executors}` : `${one.executors}`, "number"));
  const why = row.appendChild(element("td", one.reason));
  const chips = why.appendChild(element("div"));
  for (const code of [one.policy, ...one.codes]) chips.append(element("span", code, "chip"), " ");
  const became = row.appendChild(element("td"));
  if (one.mode === "observe") became.append(element("span", "recommended"));
  else if (one.outcome) {
    became.append(element("span", one.outcome, one.outcome === "confirmed" ? "good" : "bad"), element("div", one.outcome_reason, "sub"));
  } else became.append(element("span", moved ? "not told yet" : "nothing to change", "sub"));
  if (!moved) row.className = "hold";
  return row;
}

// What is the same stays, so that a text that somebody has marked in it does, too.
function replaceIfOther(holder, made) {
  if (made.length !== holder.children.length || made.some((one, i) => !one.isEqualNode(holder.children[i]))) holder.replaceChildren(...made);
}

// What it has of its pool, in a line.
function showPool(pool) {
  const section = document.getElementById("of-pool");
  section.hidden = !pool;
  if (!pool) return;
  const { share: one, short } = pool;
  const line = element("p", undefined, "note");
  line.append(Object.assign(element("a", pool.pool), { href: `${up}pools#pool-${encodeURIComponent(pool.pool)}` }));
  const replays = one.wanted_replay ? `, and ${one.granted_replay} of ${one.wanted_replay} for replays` : "";
  const said = [`: ${one.granted === null ? "nothing was granted yet" : `${one.granted} granted`} of ${number(one.wanted)} wanted${replays}`, one.reason];
  if (short) said.push(`the pool is too small from ${utc(short.begin)}, ${number(short.enough)} cores would be enough`);
  if (pool.trouble) said.push(pool.trouble);
  line.append(`${said.filter(Boolean).join("; ")}.`);
  replaceOthers(section, [section.querySelector("h2"), line]);
}

function redraw() {
  if (latest) draw(history[range], latest.forecast, latest.row.target_s, KEEP_S[range] / 2);
}

function take(values) {
  const { row, forecast, now } = values;
  latest = values;
  if (values.oldest < history.coarse?.[0][0] - LONGER_S) {
    history.fine = history.coarse = null; // older hours have been read meanwhile: the next answer brings all of them
    return;
  }
  for (const name of ["fine", "coarse"]) add(name, values[name]);
  document.body.className = `rank-${rank(row)}`;
  setText(document.getElementById("state"), `${row.trouble || "fine"}${row.age_s === null ? "" : `, measured ${ago(row.age_s)}`}`);
  replaceIfOther(document.getElementById("tiles"), tiles(row));
  showMode(row, now);
  showPool(values.pool);
  setText(document.getElementById("fan"), forecast ? `Forecast by ${forecast.model} ${forecast.version}, issued ${ago(now - forecast.issued_at)}.` : "No forecast yet.");
  redraw();
  replaceIfOther(document.querySelector("#decided tbody"), values.decisions.map(decisionRow));
  document.body.dataset.ready = "true";
}

for (const button of document.querySelectorAll("button.range")) {
  button.addEventListener("click", () => {
    range = button.dataset.range;
    for (const other of document.querySelectorAll("button.range")) other.setAttribute("aria-pressed", String(other === button));
    redraw();
  });
}
// The open step of the longer history is asked for again, so that it grows.
const newest = () => (history.coarse?.[0].length ? Math.min(history.coarse[0].at(-1), history.fine[0].at(-1) ?? Infinity) - 0.5 : 0);
follow(() => `data/jobs/${encodeURIComponent(job)}?after=${newest()}`, take);
