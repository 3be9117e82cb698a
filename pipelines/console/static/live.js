// Data that is asked for each second while the page is seen, and numbers as people read them.

const EVERY_MS = 1000;
const SOON_MS = 150; // while the server reads the topics, so that its first screen is seen when it is there
const SLOW_MS = 5000; // after a failure
const HANGS_MS = 15000; // within which an answer is there
export const up = document.body.dataset.up;

export function element(tag, text, classes) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const problem = document.getElementById("problem");
export function tell(text) {
  setText(problem, text);
  problem.hidden = !text;
}

// What an answer that is no success says, in words.
export async function refusal(answer) {
  const said = await answer.json().catch(() => ({}));
  const detail = typeof said.detail === "string" ? said.detail : `status ${answer.status}`;
  if (answer.status === 401) return `Your login has ended (${detail}). Log in to Airflow, then load this page again.`;
  return detail;
}

// Asks `address()` again and again and hands what comes to `take`; says what goes wrong above the page.
export function follow(address, take) {
  let timer;
  let asking = false; // whoever comes back while an answer is on its way begins no second round beside it
  async function values() {
    try {
      const answer = await fetch(up + address(), { headers: { accept: "application/json" }, signal: AbortSignal.timeout(HANGS_MS) });
      if (answer.ok) return await answer.json();
      tell(await refusal(answer));
    } catch (error) {
      tell(`Airflow does not answer (${error.message}). What is shown may be old.`);
    }
    return null;
  }
  async function ask() {
    if (asking) return;
    asking = true;
    const came = await values();
    asking = false;
    if (!document.hidden) timer = setTimeout(ask, came ? (came.reading ? SOON_MS : EVERY_MS) : SLOW_MS);
    if (came) {
      tell(came.problem);
      take(came);
    }
  }
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden) ask();
  });
  ask();
}

// Puts the made children into a holder. What is the same stays; the link that has the focus keeps it, wherever it goes.
export function replaceOthers(holder, made) {
  if (holder.matches(":active")) return; // a click counts only if what was pressed is there still when it is let go
  const focused = document.activeElement;
  const same = () => [...holder.querySelectorAll("a")].filter((link) => link.href === focused.href);
  const which = same().indexOf(focused); // several rows may be of one job
  made.forEach((one, place) => {
    const old = holder.children[place];
    if (!old) holder.append(one);
    else if (!old.isEqualNode(one)) old.replaceWith(one);
  });
  while (holder.children.length > made.length) holder.lastElementChild.remove();
  if (which >= 0 && !focused.isConnected) (same()[which] ?? same().at(-1))?.focus({ preventScroll: true });
}

// Names each cell of a row by its column, for screens that are too narrow for a table; `table` holds that, or names it.
export function titled(row, table) {
  const titles = (typeof table === "string" ? document.querySelector(table) : table).querySelectorAll("thead th");
  for (const [place, cell] of [...row.cells].entries()) if (place) cell.dataset.title = titles[place].textContent;
  return row;
}

const DASH = "–";
export function number(value, digits = 3) {
  if (value === null || value === undefined) return DASH;
  const whole = Math.floor(Math.log10(Math.abs(value) || 1)) + 1; // digits before the point, which are always shown
  return value.toLocaleString("en", { maximumSignificantDigits: Math.max(digits, whole) }).replace("-", "−");
}
export function share(value, digits = 2) {
  if (value === null || value === undefined) return DASH;
  const shown = number(100 * value, digits);
  return `${value < 1 && shown === "100" ? ">\u00a099" : shown}\u00a0%`; // what is not whole is not told as whole
}
// A burn rate; what rounds to a hundredth of the allowed is nothing.
export const burn = (value) => (value !== null && value < 0.005 ? "0" : number(value, 2));
export const seconds = (value) => (value === null || value === undefined ? DASH : `${number(value, 2)}\u00a0s`);
const day = (at) => new Date(1000 * at).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
// The time of day, with the day if that is not today.
export function clock(at) {
  const time = new Date(1000 * at).toLocaleTimeString("en-GB");
  return day(at) === day(Date.now() / 1000) ? time : `${day(at)} ${time}`;
}
// The same in UTC, to the minute, as the reasons of decisions have it.
export function utc(at) {
  const [date, time] = new Date(1000 * at).toISOString().split("T");
  return `${date === new Date().toISOString().slice(0, 10) ? "" : `${date} `}${time.slice(0, 5)} UTC`;
}
export function span(length_s) {
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (length_s >= 2 * length) return `${Math.round(length_s / length)} ${unit}`;
  }
  return `${Math.max(0, Math.round(length_s))} s`;
}
export const ago = (length_s) => `${span(length_s)} ago`;

export const RANKS = ["fine", "noted", "late", "blind", "burning", "broken"];
export const rank = (row) => RANKS[row.rank];
