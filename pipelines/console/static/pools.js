// The page of all pools: what each is short of, and what each of its jobs has of it and why.
import { ago, element, follow, number, replaceOthers, setText, share, titled, up, utc } from "./live.js";

const holder = document.getElementById("pools");
const template = document.getElementById("pool");
const money = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });

function stands(pool) {
  const parts = [`${number(pool.used)} of ${number(pool.cores)} cores granted`];
  if (pool.memory_gb !== null) parts.push(`${number(pool.used_gb)} of ${number(pool.memory_gb)} GB`);
  if (pool.usable < pool.cores) parts.push(`its quota leaves ${number(pool.usable)} cores`);
  for (const one of pool.quotas) parts.push(`${number(one.taken)} of ${number(one.most)} core-hours of this ${one.of} taken`);
  if (pool.price !== null) parts.push(`${money(pool.price)} an hour, ${money(pool.most_price)} at most`);
  return `${parts.join("; ")}.`;
}

function shortage(short) {
  const end = short.until === null ? "no end is forecast" : `until ${utc(short.until)}`;
  const jobs = short.jobs.length ? ` ${short.jobs.join(", ")} will have less than asked for.` : "";
  return `Too small from ${utc(short.begin)}, ${end}: ${number(short.enough)} cores would be enough.${jobs}`;
}

function notes(pool) {
  const asked = pool.state === "asked" ? [element("li", "Its hook is asked whether executors may change hands: until it answers they stay.")] : [];
  const blackouts = pool.blackouts.map(([begin, end, jobs]) => element("li", `Blackout from ${utc(begin)} until ${utc(end)}: ${jobs.length ? jobs.join(", ") : "all jobs"} keep what they have.`));
  return [...asked, ...blackouts];
}

function rowOf(one, now) {
  const less = one.granted !== null && one.wanted !== null && one.granted < one.wanted;
  const row = element("tr", undefined, `rank-${less ? (one.late ? "burning" : "late") : "fine"}`);
  const job = row.appendChild(element("th"));
  job.scope = "row";
  job.appendChild(element("a", one.job)).href = `${up}jobs/${encodeURIComponent(one.job)}`;
  const replays = one.wanted_replay || one.granted_replay ? `${one.granted_replay} of ${one.wanted_replay}` : "–";
  for (const text of [number(one.wanted), number(one.running), number(one.granted), replays, number(one.weight), number(one.floor), share(one.budget_left)]) {
    row.append(element("td", text, "number"));
  }
  const why = row.appendChild(element("td", undefined, "state"));
  why.appendChild(element("span", "", "mark")).setAttribute("aria-hidden", "true");
  const kept = { frozen: "frozen: it keeps what it has", blackout: "blackout: it keeps what it has" }[one.frozen];
  const silent = one.heard_at === null ? "it has not spoken" : now - one.heard_at > 30 ? `silent: heard ${ago(now - one.heard_at)}` : "";
  const late = one.late ? "its promise is not kept with these, by what is expected" : "";
  why.append(element("span", [one.reason, one.reason.includes("frozen") ? "" : kept, silent, late].filter(Boolean).join("; ") || "has what it asks for"));
  return titled(row, template.content);
}

function sectionOf(pool, now) {
  const made = template.content.firstElementChild.cloneNode(true);
  const id = `pool-${pool.pool}`;
  made.id = id;
  made.querySelector("h2").id = `title-${id}`;
  made.setAttribute("aria-labelledby", `title-${id}`);
  setText(made.querySelector("h2"), pool.pool);
  setText(made.querySelector(".stands"), stands(pool));
  const worry = [pool.trouble && `${pool.trouble.replace(/\.$/, "")}.`, pool.short && shortage(pool.short)].filter(Boolean).join(" ").replace(/^./, (letter) => letter.toUpperCase());
  const short = made.querySelector(".short");
  setText(short, worry);
  short.hidden = !worry;
  const listed = notes(pool);
  made.querySelector(".notes").replaceChildren(...listed);
  if (!listed.length) made.querySelector(".notes").remove();
  made.querySelector("tbody").append(...pool.jobs.map((one) => rowOf(one, now)));
  return made;
}

function take(values) {
  const made = values.rows.map((pool) => sectionOf(pool, values.now));
  const first = !holder.children.length;
  replaceOthers(holder, made);
  if (first && location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  const small = values.rows.filter((one) => one.short).length;
  const trouble = values.rows.filter((one) => one.trouble).length;
  setText(document.getElementById("counts"), `${values.rows.length} ${values.rows.length === 1 ? "pool" : "pools"}, ${small} too small, ${trouble} in trouble`);
  document.getElementById("none").hidden = made.length > 0 || Boolean(values.problem);
  document.body.dataset.ready = "true";
}

follow(() => "data/pools", take);
