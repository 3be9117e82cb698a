// The page of all backfills: those that go on, and the newest that are over.
import { ago, clock, element, follow, number, replaceOthers, setText, share, span, up } from "./live.js";

const body = document.querySelector("#backfills tbody");
const titles = [...document.querySelectorAll("#backfills thead th")].map((title) => title.textContent);
const DASH = "–";
const GOES_WELL = ["running", "read", "done"];
const moment = (at) => new Date(1000 * at).toISOString().slice(0, 16).replace("T", " ");

// A cell whose texts stay whole, and stand below each other where the column is narrow.
function parts(texts) {
  const cell = element("td", undefined, "parts");
  cell.append(...whole(texts));
  return cell;
}
const whole = (texts) => texts.flatMap((text) => [element("span", text), " "]);

// The hours that are corrected; the day once, where it is one.
function hours(begin, end) {
  const [from, to] = [moment(begin), moment(end)];
  return [from, `to ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`];
}

function finish(one, now) {
  if (one.over) return [ago(now - one.heard_at)];
  if (one.done_at === null) return one.planned.length ? [] : [DASH];
  return [`${clock(one.done_at)},`, `in ${span(one.done_at - now)}`];
}

function rate(one) {
  if (one.over || one.rps === null) return DASH;
  return one.admitted_rps === null ? number(one.rps) : `${number(one.rps)} of ${number(one.admitted_rps)}`;
}

function rank(one) {
  if (one.state === "failed") return "broken";
  if (one.trouble) return "late";
  return GOES_WELL.includes(one.state) ? "fine" : "noted";
}

function rowOf(one, now) {
  const row = element("tr", undefined, `rank-${rank(one)}`);
  const job = row.appendChild(element("th"));
  job.scope = "row";
  job.appendChild(element("a", one.job)).href = `${up}jobs/${encodeURIComponent(one.job)}`;
  const name = row.appendChild(element("td", undefined, "parts"));
  name.append(...one.id.split(/(?<=-)/).flatMap((part) => [part, element("wbr")]));
  const state = row.appendChild(element("td", undefined, "state"));
  const mark = state.appendChild(element("span", "", "mark"));
  mark.setAttribute("aria-hidden", "true");
  state.append(element("span", [one.state, one.trouble, one.reason].filter(Boolean).join(": ")));
  const done = row.appendChild(element("td", undefined, "number"));
  const part = one.records && one.done !== null ? one.done / one.records : null;
  done.append(element("span", share(part)));
  done.appendChild(element("span", undefined, "bar-of")).appendChild(element("span")).style.width = `${100 * part}%`;
  row.append(element("td", rate(one), "number"));
  row.append(element("td", one.apart === null ? number(one.executors) : `${one.apart} of its own`, "number"));
  row.append(parts(one.begin === null || one.end === null ? [DASH] : hours(one.begin, one.end)));
  const sure = one.sure === null ? [] : [`${share(one.sure)} sure`];
  row.append(parts(one.by === null ? [DASH] : [`${clock(one.by)}${sure.length ? "," : ""}`, ...sure]));
  const done_at = row.appendChild(parts(finish(one, now)));
  if (!one.over && one.planned.length) {
    const times = one.planned.map(([level, at], place) => `${share(level)} by ${clock(at)}${one.planned[place + 1] ? "," : ""}`);
    done_at.appendChild(element("div", "planned: ")).append(...whole(times));
  }
  for (const [place, one] of [...row.cells].entries()) if (place > 2) one.dataset.title = titles[place];
  return row;
}

function take(values) {
  const made = values.rows.map((one) => rowOf(one, values.now));
  replaceOthers(body, made);
  const open = values.rows.filter((one) => !one.over);
  setText(document.getElementById("counts"), `${open.length} going on, ${open.filter((one) => one.trouble).length} in trouble`);
  document.getElementById("none").hidden = made.length > 0 || Boolean(values.problem);
  document.body.dataset.ready = "true";
}

follow(() => "data/backfills", take);
