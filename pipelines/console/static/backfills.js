// The page of all backfills: those that go on, and the newest that are over.
import { ago, clock, element, follow, number, replaceOthers, seconds, setText, share, up } from "./live.js";

const body = document.querySelector("#backfills tbody");
const titles = [...document.querySelectorAll("#backfills thead th")].map((title) => title.textContent);
const DASH = "–";
const moment = (at) => (at === null ? DASH : new Date(1000 * at).toISOString().slice(0, 16).replace("T", " "));

function rowOf(one, now) {
  const row = element("tr", undefined, `rank-${one.state === "failed" ? "broken" : one.trouble ? "late" : "fine"}`);
  const job = row.appendChild(element("th"));
  job.scope = "row";
  job.appendChild(element("a", one.job)).href = `${up}jobs/${encodeURIComponent(one.job)}`;
  row.append(element("td", one.id));
  const state = row.appendChild(element("td", undefined, "state"));
  const mark = state.appendChild(element("span", "", "mark"));
  mark.setAttribute("aria-hidden", "true");
  state.append(element("span", [one.state, one.trouble, one.reason].filter(Boolean).join(": ")));
  const done = row.appendChild(element("td", undefined, "number"));
  done.append(element("span", one.records ? share(one.done / one.records) : DASH));
  done.appendChild(element("span", undefined, "bar-of")).appendChild(element("span")).style.width = `${one.records ? (100 * one.done) / one.records : 0}%`;
  row.append(element("td", one.over ? DASH : `${number(one.rps)} of ${number(one.admitted_rps)}`, "number"));
  row.append(element("td", one.apart === null ? number(one.executors) : `${one.apart} of its own`, "number"));
  row.append(element("td", one.begin === null ? DASH : `${moment(one.begin)} to ${moment(one.end)}`, "nowrap"));
  row.append(element("td", one.by === null ? DASH : `${clock(one.by)}${one.sure === null ? "" : `, ${share(one.sure)} sure`}`, "nowrap"));
  const finish = one.over ? ago(now - one.heard_at) : one.done_at === null ? DASH : `${clock(one.done_at)}, in ${seconds(Math.round(one.done_at - now))}`;
  const cell = row.appendChild(element("td", finish, "nowrap"));
  if (!one.over && one.planned.length) {
    const times = one.planned.map(([level, at]) => `${share(level)} by ${clock(at)}`);
    cell.append(element("div", `planned: ${times.join(", ")}`));
  }
  for (const [place, one] of [...row.cells].entries()) if (place > 2) one.dataset.title = titles[place];
  return row;
}

function take(values) {
  const made = values.rows.map((one) => rowOf(one, values.now));
  replaceOthers(body, made);
  const open = values.rows.filter((one) => !one.over);
  setText(document.getElementById("counts"), `${open.length} going on, ${open.filter((one) => one.trouble).length} in trouble`);
  document.getElementById("none").hidden = made.length > 0;
  document.body.dataset.ready = "true";
}

follow(() => "data/backfills", take);
