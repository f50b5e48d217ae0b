"use strict";
// What packs say is put in as text, never as HTML.

const at = (id) => document.getElementById(id);
let key = "";
let searching = new AbortController();

/** An element; properties that are undefined are left out, and so are empty children. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) if (value !== undefined) element[property] = value;
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** What this server answers. Throws with the words of the problem. */
async function request(path, options = {}) {
  const headers = { Accept: "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (options.body) Object.assign(headers, { Accept: "text/event-stream, application/json", "Content-Type": "application/json" });
  const answer = await fetch(path, { headers, referrerPolicy: "no-referrer", ...options });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401) {
    at("keyform").hidden = false;
    throw new Error(key ? "This key does not open anything here." : "This server needs an API key.");
  }
  throw new Error(said.detail || said.title || `The server answered ${answer.status}.`);
}

/** The JSON at a path of this server. */
async function ask(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters).toString();
  return (await request(query ? `${path}?${query}` : path, { signal })).json();
}

function say(text, busy = false) {
  at("status").textContent = text;
  at("status").classList.toggle("busy", busy);
}

const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const badge = (text, warn = false) => make("li", { className: warn ? "warn" : "", textContent: text });
const badges = (...listed) => (listed.some(Boolean) ? make("ul", { className: "badges" }, listed.filter(Boolean)) : null);

/** A text with the words of the question marked. */
function marked(text, question) {
  const words = (question.match(/[\p{L}\p{N}]{4,}/gu) || []).slice(0, 40);
  if (!words.length) return [text];
  const pieces = text.split(new RegExp(`(?<![\\p{L}\\p{N}])((?:${words.join("|")})[\\p{L}\\p{N}]{0,3})(?![\\p{L}\\p{N}])`, "giu"));
  return pieces.map((piece, place) => (place % 2 ? make("mark", { textContent: piece }) : piece));
}

const HEADING = /^ {0,3}#{1,6} +(.+?)(?: +#+)? *$/;
const FENCE = /^ {0,3}(?:```|~~~)/;
const LISTED = /^\s*(?:[-*+]|\d+[.)])\s|^\s*(?:[|>]|<)|^( {4}|\t)/;

/** A passage in blocks: headings, lines that stand as they are, and paragraphs, whose lines are joined. */
function blocks(text, title, question) {
  const made = [];
  let lines = [];
  const close = () => {
    if (!lines.length) return;
    const kept = lines.some((line) => LISTED.test(line));
    const table = lines.every((line) => /^\s*\|/.test(line));
    made.push(make("p", { className: table ? "as-is table" : kept ? "as-is" : "", dir: "auto" }, marked(lines.join(kept ? "\n" : " "), question)));
    lines = [];
  };
  let fence = null;
  for (const line of text.replace(/<!--[^]*?-->/g, "").split(/\r\n|\r|\n/)) {
    if (FENCE.test(line)) {
      if (fence) made.push(make("p", { className: "as-is table", textContent: fence.join("\n") }));
      else close();
      fence = fence ? null : [];
    } else if (fence) {
      fence.push(line);
    } else if (HEADING.test(line)) {
      close();
      const said = line.match(HEADING)[1];
      if (said !== title) made.push(make("p", { className: "heading", dir: "auto", textContent: said }));
    } else if (line.trim()) {
      lines.push(line);
    } else {
      close();
    }
  }
  if (fence) lines = ["    ", ...fence];
  close();
  return made;
}

/** A button that shows a whole document below it, and hides it again. */
function reader(pack, path, label) {
  const shown = make("pre", { hidden: true, tabIndex: 0, dir: "auto" });
  const button = make("button", { type: "button", className: "link", textContent: label });
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", async () => {
    if (!shown.textContent) {
      try {
        const read = await ask(`packs/${encodeURIComponent(pack)}/read`, { id: path });
        shown.textContent = read.truncated ? `${read.content}\n…` : read.content;
      } catch (error) {
        shown.textContent = error.message;
      }
    }
    shown.hidden = !shown.hidden;
    button.setAttribute("aria-expanded", String(!shown.hidden));
  });
  return [button, shown];
}

function hit(found, question) {
  const [first, last] = found.line_range;
  const lines = first === last ? `${first}` : `${first}–${last}`;
  const trail = found.heading_path.filter((each, place) => place || each !== found.title).join(" › ");
  const verified = found.verified_at ? `verified ${found.verified_at}` : "never verified";
  const more = found.duplicates.length;
  return make("article", {},
    make("h3", { textContent: found.title, dir: "auto" }),
    trail ? make("p", { className: "path", textContent: trail, dir: "auto" }) : null,
    badges(
      found.expired && badge(`expired ${found.expires_at}`, true),
      found.age_stale && badge("due to be verified again", true),
      found.requires_expanded && badge("needed by a result"),
      found.graph_expanded && badge("linked with a result"),
      more && badge(`said ${more === 1 ? "once" : `${more} times`} more`),
    ),
    make("div", { className: "passage" }, blocks(found.text, found.title, question)),
    make("p", { className: "facts" },
      make("code", { textContent: `${found.pack}/${found.source_file}:${lines}` }),
      make("span", { textContent: verified }),
    ),
    reader(found.pack, found.id, "Read the document"),
  );
}

const REASONS = {
  no_relevant_passage: "No passage of these packs answers that.",
  empty_query: "Nothing was asked.",
  not_in_sources: "The passages that were found do not answer that.",
};

/** The documents that were nearest to a question which nothing answers. */
function nearest(listed) {
  if (!listed.length) return [];
  const cards = listed.map((near) => make("article", {}, make("h3", { textContent: near.title, dir: "auto" }),
    make("p", { className: "facts" }, make("code", { textContent: near.id })),
    reader(near.pack, near.id, "Read the document")));
  return [make("p", { className: "soft", textContent: "Nearest to it, though no answer:" }), ...cards];
}

function show(answer) {
  const parts = [];
  if (answer.missing.includes("encoder")) parts.push(notice("Meaning could not be compared: only words were matched."));
  if (answer.doubtful) parts.push(notice("This is probably no answer. Read it before you rely on it."));
  if (answer.refused) parts.push(notice(REASONS[answer.reason] || "Nothing was found."));
  parts.push(...nearest(answer.nearest));
  parts.push(...answer.results.map((found) => hit(found, answer.query)));
  at("answer").replaceChildren(...parts);
  const release = answer.pack ? ` of ${answer.pack}, release ${answer.digest.slice(0, 12)}` : "";
  say(answer.refused ? "" : count(answer.results.length, "passage") + release);
}

const notice = (text) => make("div", { className: "notice" }, make("p", { textContent: text }));

/** Give up what is being asked, and begin with what is in the form. */
function begin(text) {
  searching.abort();
  searching = new AbortController();
  at("stop").hidden = true;
  history.replaceState(null, "", `#${new URLSearchParams(asked())}`);
  say(text, true);
  return searching.signal;
}

const asked = () => ({ q: at("query").value, ...(at("pack").value && { pack: at("pack").value }) });

async function search() {
  const signal = begin("Searching…");
  try {
    show(await ask("search", asked(), signal));
  } catch (error) {
    if (signal.aborted) return;
    at("answer").replaceChildren(notice(error.message));
    say("");
  }
}

function packItem(pack) {
  const { coverage_pct: covered, stale, expired } = pack.freshness;
  const scope = pack.authority_boundary;
  return make("li", {},
    make("h3", {}, make("span", { textContent: pack.name, dir: "auto" }), make("code", { className: "soft", textContent: pack.slug })),
    pack.description ? make("p", { textContent: pack.description, dir: "auto" }) : null,
    scope?.out_of_scope.length ? make("p", { className: "soft", textContent: `Not about ${scope.out_of_scope.join("; ")}.`, dir: "auto" }) : null,
    make("p", { className: "facts" },
      make("span", { textContent: `version ${pack.version}` }),
      make("span", { textContent: count(pack.documents, "document") }),
      make("span", { textContent: count(pack.passages, "passage") }),
      make("code", { textContent: pack.digest.slice(0, 12), title: `Release ${pack.digest}` }),
    ),
    badges(
      covered !== null && badge(`${covered} % verified`),
      stale && badge(`${stale} due to be verified again`, true),
      expired && badge(`${expired} expired`, true),
    ),
  );
}

function connect(packs) {
  const here = new URL(".", location.href).href;
  const headers = key ? { headers: { Authorization: "Bearer KEY" } } : {};
  const client = { mcpServers: { octavo: { type: "http", url: `${here}mcp`, ...headers } } };
  at("client").textContent = JSON.stringify(client, null, 2);
  const slug = packs.length > 1 ? ` -d pack=${packs[0].slug}` : "";
  at("shell").textContent = `curl -sG${key ? " -H 'Authorization: Bearer KEY'" : ""} ${here}search --data-urlencode 'q=how do I start?'${slug}`;
}

async function load() {
  try {
    const [{ packs }, { endpoints }] = await Promise.all([ask("packs"), ask(".")]);
    at("ask").hidden = !endpoints["/ask"];
    at("keyform").hidden = !key;
    at("packs").replaceChildren(...packs.map(packItem));
    at("pack").replaceChildren(at("pack").options[0], ...packs.map((pack) => make("option", { value: pack.slug, textContent: pack.name })));
    at("pack").hidden = packs.length < 2;
    connect(packs);
    say("");
    const linked = new URLSearchParams(location.hash.slice(1));
    if (linked.get("q")) {
      at("query").value = linked.get("q");
      at("pack").value = packs.some((pack) => pack.slug === linked.get("pack")) ? linked.get("pack") : "";
      // a link searches and never asks: somebody may pay for the model
      await search();
    }
  } catch (error) {
    say(error.message);
    if (!at("keyform").hidden) at("key").focus();
  }
}

at("searchform").addEventListener("submit", (event) => { event.preventDefault(); event.submitter === at("ask") ? answerQuestion() : search(); });
at("stop").addEventListener("click", () => searching.abort());
at("keyform").addEventListener("submit", (event) => {
  event.preventDefault();
  key = at("key").value.trim();
  at("key").value = "";
  load();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
  event.preventDefault();
  at("query").focus();
});
for (const button of document.querySelectorAll("[data-copies]")) {
  if (!navigator.clipboard) button.hidden = true;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(at(button.dataset.copies).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
connect([]);
load();
