// The page of all topologies: the plan in force, where each query runs, and what was advised last.
import { ago, element, follow, number, replaceOthers, RANKS, seconds, setText, titled, up, utc } from "./live.js";

const holder = document.getElementById("topologies");
const template = document.getElementById("topology");
const money = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });

function stands(one) {
  if (one.problem) return "";
  const clusters = Object.entries(one.clusters).map(([name, cores]) => `${name} with ${number(cores)} cores`).join(", ");
  const promised = `${one.operators.length} operators in ${number(one.target_s)} s, on ${clusters}.`;
  if (!one.begun) return `${promised} Not begun here: tidecast plan ${one.name} shows a plan, tidecast job up ${one.name} begins it.`;
  const { since, price, latency_s: latency, kept } = one.plan;
  const keeps = kept ? "within the target" : "over the target";
  return `${promised} Plan in force since ${utc(since)}: ${seconds(latency)} by the model, ${keeps}, at ${money(price)} an hour.`;
}

function rowOf(query) {
  const elsewhere = query.at !== null && query.at !== query.cluster;
  const own = query.known ? query.rank : 1;
  const rank = RANKS[elsewhere || query.offloaded ? Math.max(own, 1) : own];
  const row = element("tr", undefined, `rank-${rank}`);
  const name = row.appendChild(element("th"));
  name.scope = "row";
  if (query.known) name.appendChild(element("a", query.name)).href = `${up}jobs/${encodeURIComponent(query.name)}`;
  else name.append(query.name);
  const state = row.appendChild(element("td", undefined, "state"));
  state.appendChild(element("span", "", "mark")).setAttribute("aria-hidden", "true");
  const away = query.offloaded ? `off-loaded from ${query.offloaded.home} to ${query.offloaded.away} since ${utc(query.offloaded.since_s)}` : "";
  const moving = elsewhere && !query.offloaded ? `on its way from ${query.at}` : "";
  const heard = query.known ? query.trouble || `measured ${ago(query.age_s ?? 0)}` : query.at === null ? "was never started" : "nothing is heard of it";
  state.append(element("span", [away, moving, heard].filter(Boolean).join("; ")));
  row.append(element("td", query.operators.join(", "), "said"));
  row.append(element("td", query.cluster, "nowrap"));
  row.append(element("td", query.known ? `${number(query.there)} (${number(query.executors)} planned)` : `${number(query.executors)} planned`, "number"));
  row.append(element("td", seconds(query.latency_s), "number"), element("td", number(query.moves), "number"));
  return titled(row, template.content);
}

function sectionOf(one, now) {
  const made = template.content.firstElementChild.cloneNode(true);
  made.id = `topology-${one.name}`;
  made.querySelector("h2").id = `title-${made.id}`;
  made.setAttribute("aria-labelledby", `title-${made.id}`);
  setText(made.querySelector("h2"), one.name);
  const changed = one.changed ? `Its file has changed since it was begun: it runs, and is planned anew, as it was begun. tidecast plan ${one.name} plans what the file says now.` : "";
  for (const [name, text] of [["stands", stands(one)], ["short", one.problem || changed]]) {
    setText(made.querySelector(`.${name}`), text);
    made.querySelector(`.${name}`).hidden = !text;
  }
  const advice = made.querySelector(".advice");
  advice.hidden = !one.advice;
  if (one.advice) setText(advice, `Advised ${ago(now - one.advice.at)}${one.advice.asks ? ", and a person was asked in Airflow" : ""}: ${one.advice.told}`);
  made.querySelector("tbody").append(...one.queries.map(rowOf));
  if (!one.queries.length) made.querySelector(".scroll").remove();
  return made;
}

function take(values) {
  replaceOthers(holder, values.rows.map((one) => sectionOf(one, values.now)));
  const begun = values.rows.filter((one) => one.begun).length;
  setText(document.getElementById("counts"), `${values.rows.length} ${values.rows.length === 1 ? "topology" : "topologies"}, ${begun} begun here`);
  document.getElementById("none").hidden = values.rows.length > 0 || Boolean(values.problem);
  document.body.dataset.ready = "true";
}

follow(() => "data/topologies", take);
