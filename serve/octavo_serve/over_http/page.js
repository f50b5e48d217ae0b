"use strict";
// What packs say is put in as text, never as HTML.

const at = (id) => document.getElementById(id);
let key = "";
let asking = new AbortController();

/** An element; properties that are undefined are left out, and so are empty children. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) if (value !== undefined) element[property] = value;
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** The answer of this server to a request. Throws with the words of the problem. */
async function request(path, options) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const answer = await fetch(path, { ...options, headers, referrerPolicy: "no-referrer" });
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
  const answer = await request(query ? `${path}?${query}` : path, { headers: { Accept: "application/json" }, signal });
  return answer.json();
}

/** The events of an answer, as they come. */
async function* events(asked, signal) {
  const headers = { Accept: "text/event-stream", "Content-Type": "application/json" };
  const answer = await request("ask", { method: "POST", headers, body: JSON.stringify(asked), signal });
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n").map((line) => line.match(/^(event|data): (.*)$/)).filter(Boolean);
      const { event, data } = Object.fromEntries(lines.map((line) => [line[1], line[2]]));
      if (event) yield [event, JSON.parse(data)];
    }
  }
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

/** Where a passage stands, and how old it is. */
function standing(found) {
  const [first, last] = found.line_range;
  const lines = first === last ? `${first}` : `${first}–${last}`;
  return make("p", { className: "facts" },
    make("code", { textContent: `${found.pack}/${found.source_file}:${lines}` }),
    make("span", { textContent: found.verified_at ? `verified ${found.verified_at}` : "never verified" }),
  );
}

const trailOf = (found) => found.heading_path.filter((each, place) => place || each !== found.title).join(" › ");
const ages = (found) => [
  found.expired && badge(`expired ${found.expires_at}`, true),
  found.age_stale && badge("due to be verified again", true),
];

function hit(found, question) {
  const trail = trailOf(found);
  const more = found.duplicates.length;
  return make("article", {},
    make("h3", { textContent: found.title, dir: "auto" }),
    trail ? make("p", { className: "path", textContent: trail, dir: "auto" }) : null,
    badges(
      ...ages(found),
      found.requires_expanded && badge("needed by a result"),
      found.graph_expanded && badge("linked with a result"),
      more && badge(`said ${more === 1 ? "once" : `${more} times`} more`),
    ),
    make("div", { className: "passage" }, blocks(found.text, found.title, question)),
    standing(found),
    reader(found.pack, found.id, "Read the document"),
  );
}

const REASONS = {
  no_relevant_passage: "No passage of these packs answers that.",
  empty_query: "Nothing was asked.",
  not_in_sources: "The sources that were found do not answer this question.",
};

/** What is nearest to a question that has no answer. */
function nearest(listed) {
  if (!listed.length) return [];
  const items = listed.map((near) => make("article", {}, make("h3", { textContent: near.title, dir: "auto" }),
    make("p", { className: "facts" }, make("code", { textContent: near.id })),
    reader(near.pack, near.id, "Read the document")));
  return [make("p", { className: "soft", textContent: "Nearest to it, though no answer:" }), ...items];
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

/** Begin a new question; whatever was under way ends. */
function begin(parameters, asked) {
  asking.abort();
  asking = new AbortController();
  history.replaceState(null, "", `#${new URLSearchParams(parameters)}`);
  at("answer").className = asked ? "asked" : "";
  at("stop").hidden = !asked;
  return asking.signal;
}

async function search() {
  const parameters = { q: at("query").value };
  if (at("pack").value) parameters.pack = at("pack").value;
  const signal = begin(parameters, false);
  say("Searching…", true);
  try {
    show(await ask("search", parameters, signal));
  } catch (error) {
    if (signal.aborted) return;
    at("answer").replaceChildren(notice(error.message));
    say("");
  }
}

const sourceName = (number) => `source-${number}`;

/** A text with its citations as links to the sources; no piece of an answer has half a citation. */
function cited(text, sources) {
  return text.split(/\[(\d+)\]/).map((piece, place) => {
    const source = place % 2 ? sources[piece - 1] : null;
    if (!source) return place % 2 ? `[${piece}]` : piece.replace(/ $/, "\u00a0");  // a number stays with its word
    const link = make("a", { className: "cite", href: `#${sourceName(piece)}`, textContent: piece, title: source.title });
    link.setAttribute("aria-label", `Source ${piece}: ${source.title}`);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      at(sourceName(piece)).focus();
    });
    return link;
  });
}

const flag = (text, quiet = false) => make("span", { className: quiet ? "flag quiet" : "flag", textContent: text });

/** The sentences of a whole answer: those that their sources do not support, and those without any, are told. */
function judged(done, sources) {
  const characters = Array.from(done.answer);  // ranges count characters, not UTF-16
  const doubted = done.unsupported.map((each) => ({ ...each, bare: false }));
  const told = [...doubted, ...done.uncited.map((each) => ({ ...each, bare: true }))].sort((a, b) => a.range[0] - b.range[0]);
  const parts = [];
  let place = 0;
  for (const each of told) {
    const [start, end] = each.range;
    if (start < place) continue;
    parts.push(...cited(characters.slice(place, start).join(""), sources));
    const said = cited(characters.slice(start, end).join(""), sources);
    const elsewhere = each.supported_by ? `; source ${each.supported_by} does` : "";
    parts.push(make("span", { className: each.bare ? "" : "doubted" }, said));
    parts.push(each.bare ? flag("no source", true) : flag(`its source does not say so${elsewhere}`));
    place = end;
  }
  return [...parts, ...cited(characters.slice(place).join(""), sources)];
}

function sourceCard(source, question) {
  const trail = trailOf(source);
  return make("li", {}, make("article", { id: sourceName(source.number), tabIndex: -1 },
    make("h3", { dir: "auto" }, make("span", { className: "number", textContent: `${source.number} ` }), source.title),
    trail ? make("p", { className: "path", textContent: trail, dir: "auto" }) : null,
    badges(...ages(source)),
    standing(source),
    make("details", {}, make("summary", { textContent: "What the model read" }),
      make("div", { className: "passage" }, blocks(source.text, source.title, question))),
    reader(source.pack, source.id, "Read the document"),
  ));
}

/** What is to be said of an answer before it is read. */
function warnings(done, sources) {
  const used = new Set(done.citations.map((each) => each.number));
  const old = sources.filter((source) => used.has(source.number) && (source.expired || source.age_stale));
  return [
    done.refused && notice(REASONS[done.reason] || "There is no answer."),
    done.unsupported.length && notice(`${count(done.unsupported.length, "sentence")} not supported by the source cited: marked below.`),
    old.length && notice(`It rests on ${old.length === 1 ? "a source that is" : "sources that are"} expired or due to be verified again: ${old.map((source) => source.number).join(", ")}.`),
    done.truncated && notice("The answer was cut where the model's limit is."),
    done.missing.includes("encoder") && notice("Meaning could not be compared: only words were matched."),
    done.missing.includes("citation_encoder") && notice("The citations were checked by their words only."),
    done.missing.includes("citation_check") && notice("Nobody has checked the citations."),
  ].filter(Boolean);
}

async function answer() {
  if (!at("query").reportValidity()) return;
  const asked = { question: at("query").value, ...(at("pack").value ? { pack: at("pack").value } : {}) };
  const signal = begin({ q: asked.question, ...(asked.pack ? { pack: asked.pack } : {}), ask: 1 }, true);
  const notes = make("div");
  const text = make("div", { className: "text", dir: "auto" });
  const facts = make("p", { className: "facts" });
  const written = make("article", { className: "written", ariaBusy: "true" }, make("h2", { textContent: "Answer" }), notes, text, facts);
  const beside = make("section", { className: "sources" });
  let sources = [];
  let ended = false;
  say("Looking for sources…", true);
  at("answer").replaceChildren(written, beside);
  try {
    for await (const [name, data] of events(asked, signal)) {
      if (name === "sources") {
        sources = data.sources;
        if (sources.length) {
          beside.append(make("h2", { textContent: "Sources" }), make("ol", {}, sources.map((source) => sourceCard(source, asked.question))));
          say(`Reading ${count(sources.length, "source")}…`, true);
        }
      } else if (name === "token") {
        if (!text.hasChildNodes()) say("Writing…", true);
        text.append(...cited(data.text, sources).filter(Boolean));
      } else if (name === "done") {
        ended = true;
        notes.replaceChildren(...warnings(data, sources));
        text.replaceChildren(...(data.refused ? [] : judged(data, sources)));
        written.after(...(data.nearest.length ? [make("section", {}, nearest(data.nearest))] : []));
        const packs = [...new Set(sources.map((source) => source.pack))].join(", ");
        facts.replaceChildren(
          make("span", {}, `${packs ? `${packs}, ` : ""}release `, make("code", { textContent: data.digest.slice(0, 12), title: `Release ${data.digest}` })),
          make("span", { textContent: `${(data.timings.total_ms / 1000).toFixed(1)} s` }),
          data.receipt?.model ? make("span", { textContent: data.receipt.model }) : "",
        );
        say(data.refused ? "Refused." : `Answered from ${count(sources.length, "source")}.`);
      } else if (name === "error") {
        ended = true;
        throw new Error(data.message);
      }
    }
    if (!ended) throw new Error("the connection broke");
  } catch (error) {
    if (signal.aborted && asking.signal !== signal) return;
    const partial = text.hasChildNodes() ? " What is written below is no whole answer." : "";
    notes.replaceChildren(notice(signal.aborted ? `Stopped.${partial}` : `There is no answer: ${error.message}.${partial}`));
    say("");
  }
  written.ariaBusy = "false";
  at("stop").hidden = true;
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
    const { packs } = await ask("packs");
    at("keyform").hidden = !key;
    at("packs").replaceChildren(...packs.map(packItem));
    at("pack").replaceChildren(at("pack").options[0], ...packs.map((pack) => make("option", { value: pack.slug, textContent: pack.name })));
    at("pack").hidden = packs.length < 2;
    connect(packs);
    const { endpoints } = await ask("./");
    at("ask").hidden = !endpoints["/ask"];
    say("");
    const asked = new URLSearchParams(location.hash.slice(1));
    if (asked.get("q")) {
      at("query").value = asked.get("q");
      at("pack").value = packs.some((pack) => pack.slug === asked.get("pack")) ? asked.get("pack") : "";
      // a link must not have a model work
      if (asked.has("ask") && !at("ask").hidden) at("ask").focus();
      else await search();
    }
  } catch (error) {
    say(error.message);
    if (!at("keyform").hidden) at("key").focus();
  }
}

at("searchform").addEventListener("submit", (event) => { event.preventDefault(); search(); });
at("ask").addEventListener("click", answer);
at("stop").addEventListener("click", () => asking.abort());
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
