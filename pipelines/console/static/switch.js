// The switch of a job's mode: a dialog that says what it does, and what the server says of it.
import { ago, refusal, setText, up } from "./live.js";

const dialog = document.getElementById("confirm");
const buttons = [...document.querySelectorAll("button.mode")];
const told = document.getElementById("told");
const HANGS_MS = 60000; // by which the server has sent the word, or sends it no more
const job = document.body.dataset.job;
let known = null;

// Shows the mode that the agent is in, and the word that a person gave.
export function showMode(row, now) {
  known = row;
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.mode === (row.mode ?? row.word?.mode)));
  const word = row.word;
  const said = word ? `Told to ${word.mode}${word.by ? ` by ${word.by}` : ""} ${ago(now - word.at)}.` : "Nobody has set its mode: it is in the one that its code sets.";
  const differs = word && row.mode && word.mode !== row.mode ? ` Its agent is in ${row.mode}: its code allows no more, or it has not followed yet.` : "";
  const means = dialog.querySelector(`[data-means="${row.mode ?? row.word?.mode}"]`)?.textContent ?? "";
  setText(document.getElementById("word"), `${means} ${said}${differs}`);
}

async function send(mode, seen) {
  setText(told, `Telling ${job} to ${mode} …`);
  try {
    const answer = await fetch(`${up}data/jobs/${encodeURIComponent(job)}/mode`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", "x-tidecast-console": "1" },
      body: JSON.stringify({ mode, seen, confirmed: job }),
      signal: AbortSignal.timeout(HANGS_MS),
    });
    setText(told, answer.ok ? `${job} was told to ${mode}.` : await refusal(answer));
    told.classList.toggle("bad", !answer.ok);
  } catch (error) {
    setText(told, `Airflow does not answer (${error.message}). Whether the mode was changed is not known: look again.`);
    told.classList.add("bad");
  }
}

for (const button of buttons) {
  button.addEventListener("click", () => {
    if (!known) return;
    const mode = button.dataset.mode;
    setText(document.getElementById("confirm-title"), `Let ${job} ${mode}?`);
    setText(document.getElementById("change"), mode === "act" ? "Let decisions be applied" : mode === "freeze" ? "Freeze its executors" : "Only observe");
    for (const text of dialog.querySelectorAll("[data-means]")) text.hidden = text.dataset.means !== mode;
    dialog.dataset.mode = mode;
    dialog.dataset.seen = JSON.stringify(known.word?.at ?? null); // what the person saw when deciding
    dialog.returnValue = "cancel";
    dialog.showModal();
  });
}
dialog.addEventListener("close", () => {
  if (dialog.returnValue === "change") send(dialog.dataset.mode, JSON.parse(dialog.dataset.seen));
});
