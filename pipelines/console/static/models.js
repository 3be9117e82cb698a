// The page of all registered models: what serves, how right it was, whether the load has drifted.
import { ago, element, follow, number, replaceOthers, setText, share, span, titled, up } from "./live.js";

const body = document.querySelector("#models tbody");
const DASH = "–";
const version = (one) => (one ? `${one.version}${one.kind ? `, ${one.kind}` : ""}, ${span(one.age_s)} old` : DASH);

function rowOf(one) {
  const row = element("tr", undefined, `rank-${one.trouble ? "late" : one.champion ? "fine" : "noted"}`);
  const job = row.appendChild(element("th"));
  job.scope = "row";
  job.appendChild(element("a", one.job)).href = `${up}jobs/${encodeURIComponent(one.job)}`;
  const what = row.appendChild(element("td", undefined, "nowrap"));
  what.append(one.link ? Object.assign(element("a", one.what), { href: one.link, rel: "noreferrer", target: "_blank", title: "opens in MLflow" }) : one.what);
  const state = row.appendChild(element("td", undefined, "state"));
  state.appendChild(element("span", "", "mark")).setAttribute("aria-hidden", "true");
  state.append(element("span", one.trouble || (one.champion ? "serves" : one.count ? "no champion yet" : "nothing is known of what is registered")));
  row.append(element("td", version(one.champion), "nowrap"));
  const error = one.champion?.wape ?? null;
  row.append(element("td", error === null ? DASH : `${share(error)} of ${number(one.champion.steps)} steps`, "number"));
  const rival = one.challenger && one.challenger.version !== one.champion?.version ? one.challenger : null;
  const verdict = rival?.verdict || (one.newest && one.newest.version !== one.champion?.version ? one.newest.verdict : "");
  row.append(element("td", [rival ? version(rival) : DASH, verdict].filter(Boolean).join(": "), "said"));
  row.append(element("td", one.count ? number(one.count) : DASH, "number"));
  row.append(element("td", one.served ? `${one.served.by}, ${ago(one.served.age_s)}` : DASH, "said"));
  row.append(element("td", one.drift ? `× ${number(one.drift.factor)}, ${ago(one.drift.age_s)}` : DASH, "nowrap"));
  return titled(row, "#models");
}

function take(values) {
  replaceOthers(body, values.rows.map(rowOf));
  const serve = values.rows.filter((one) => one.champion).length;
  setText(document.getElementById("counts"), `${number(values.rows.length)} ${values.rows.length === 1 ? "model" : "models"}, ${serve} with a champion, ${values.rows.filter((one) => one.trouble).length} worth a look`);
  document.getElementById("none").hidden = values.rows.length > 0 || Boolean(values.problem);
  document.body.dataset.ready = "true";
}

follow(() => "data/models", take);
