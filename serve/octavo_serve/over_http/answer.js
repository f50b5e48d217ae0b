"use strict";
// The answer of a model: its stream, its Markdown as nodes, citations that lead to sources, and what their check found.
// What models and packs say is put in as text, never as HTML.

const STAGES = { retrieval: "while passages were looked for", generation: "while the model wrote", internal: "in the server" };
const UNSUPPORTED = {
  terms: "it does not have the words of this",
  number: "it does not have a number of this",
  negation: "one of both says no",
  meaning: "it speaks of something else",
};
const MISSING = {
  encoder: "Meaning could not be compared: only words were matched.",
  reranker: "The passages were not ranked a second time.",
  citation_check: "The citations could not be checked.",
  citation_encoder: "The citations were checked by words only.",
};

/** The events of a stream, each with its data (WHATWG HTML, 9.2); comments are left out. */
async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const ended = (held + value).split("\n\n");
    held = ended.pop();
    for (const event of ended) {
      const fields = Object.fromEntries(event.split("\n").map((line) => line.match(/^(\w*): ?(.*)$/)?.slice(1) ?? ["", ""]));
      if (fields.data) yield { name: fields.event, data: JSON.parse(fields.data) };
    }
  }
}

/** A link to the card of a source, which it opens. */
function citation(number, sources) {
  const { title } = sources[number - 1];
  const link = make("a", { className: "citation", href: `#source-${number}`, textContent: `[${number}]`, title });
  link.setAttribute("aria-label", `[${number}], source ${title}`);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const card = at(`source-${number}`);
    card.querySelector("details").open = true;
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "start" });
    // it may be further down in the box of the text
    card.querySelector("mark")?.scrollIntoView({ block: "nearest" });
  });
  return link;
}

const INLINE = /(`+)([^`](?:[^]*?[^`])?)\1(?!`)|\*\*(?=\S)([^]+?\S)\*\*|\[(\d{1,2})\]/g;

/** A part of an answer: code, bold, citations, and marks under sentences that do not hold. */
function inline(view, start, end) {
  const nodes = [];
  let last = start;
  for (const found of view.text.slice(start, end).matchAll(INLINE)) {
    const place = start + found.index;
    const [all, , code, bold, number] = found;
    if (number && !view.cites(Number(number))) continue;
    nodes.push(...plain(view, last, place));
    last = place + all.length;
    if (number) nodes.push(citation(Number(number), view.sources));
    else if (bold) nodes.push(make("strong", {}, inline(view, place + 2, last - 2)));
    else nodes.push(underlined(view, place, make("code", { textContent: code })));
  }
  return [...nodes, ...plain(view, last, end)];
}

/** Text of an answer, in pieces where marks begin and end; numbers of no source stand where they would. */
function plain(view, start, end) {
  const cuts = [...view.marks.flatMap((mark) => [mark.start, mark.end]), ...view.invalid.map((each) => each.position)];
  const within = cuts.filter((place) => place > start && place < end).sort((one, other) => one - other);
  const places = [start, ...new Set(within), end];
  return places.flatMap((from, number) => {
    const text = view.text.slice(from, places[number + 1] ?? from);
    const wrong = view.invalid.filter((each) => each.position === from && !view.shown.has(each));
    wrong.forEach((each) => view.shown.add(each));
    return [...wrong.map(wrongCitation), ...(text ? [underlined(view, from, text)] : [])];
  });
}

const wrongCitation = ({ number }) => make("span", { className: "wrong", textContent: `[${number}?]`, title: `There is no source ${number}` });

function underlined(view, place, child) {
  const mark = view.marks.find((each) => each.start <= place && place < each.end);
  return mark ? make("span", { className: mark.name, title: mark.title }, child) : child;
}

const ITEM = /^ *(?:[-*+]|(\d{1,9})[.)]) +(?=\S)/;

/** An answer in blocks: paragraphs, lists, code, tables as they are. Each is a part of the text without a gap. */
function paragraphs(view) {
  const made = [];
  let block = null;
  let place = 0;
  const close = () => {
    if (block?.name === "pre") made.push(make("pre", { tabIndex: 0, textContent: view.text.slice(block.start, block.end) }));
    else if (block?.name === "li") made.at(-1).append(make("li", { dir: "auto" }, inline(view, block.start, block.end)));
    else if (block) made.push(make("p", { className: block.name, dir: "auto" }, inline(view, block.start, block.end)));
    block = null;
  };
  const open = (name, start, end) => { close(); block = { name, start, end }; };
  for (const line of view.text.split("\n")) {
    const end = place + line.length;
    const item = line.match(ITEM);
    const heading = line.match(/^#{1,6} +/);
    if (block?.name === "pre") {
      if (FENCE.test(line)) close();
      else block.end = end;
    } else if (FENCE.test(line)) {
      open("pre", end + 1, end + 1);
    } else if (item) {
      close();
      const name = item[1] ? "OL" : "UL";
      if (made.at(-1)?.nodeName !== name) made.push(make(name, item[1] ? { start: Number(item[1]) } : {}));
      open("li", place + item[0].length, end);
    } else if (heading) {
      open("heading", place + heading[0].length, end);
      close();
    } else if (!line.trim()) {
      close();
    } else {
      const table = /^\s*\|/.test(line) ? "table" : "";
      if (!block || (block.name !== "li" && block.name !== table)) open(table, place, end);
      block.end = end;
    }
    place = end + 1;
  }
  close();
  return made;
}

/** What `paragraphs` needs of an answer; without `done` it is still being written. */
function viewOf(text, sources, done = null) {
  // ranges count characters, strings here have two units for some of them
  const places = [0];
  for (const character of text) places.push(places.at(-1) + character.length);
  const marked = (name, title, listed) => listed.map(({ range }) => ({ name, title, start: places[range[0]], end: places[range[1]] }));
  const known = new Set(done ? done.citations.map((each) => each.number) : sources.map((each) => each.number));
  return {
    text,
    sources,
    cites: (number) => known.has(number) && number <= sources.length,
    marks: done ? [...marked("unsupported", "Not supported by what it cites", done.unsupported), ...marked("uncited", "Cites no source", done.uncited)] : [],
    invalid: done ? done.invalid_citations.map(({ number, position }) => ({ number, position: places[position] })) : [],
    shown: new Set(),
  };
}

/** Where the bytes of an evidence are in the text of its source, in bytes; null when it is the whole passage. */
async function standing(source, bytes, { byte_range: [start, end], sha256 }) {
  if (sha256 === source.span_sha256) return null;
  const [first, last] = source.byte_range;
  const place = start - first;
  // browsers have no SHA-256 where the page came by plain HTTP from another machine
  if (!window.crypto?.subtle) return bytes.length > last - first ? null : [place, place + end - start];
  // the head of a split table is repeated before the bytes of the file
  const heads = [0];
  bytes.forEach((byte, number) => byte === 10 && heads.push(number + 1));
  for (const head of heads) {
    const range = [head + place, head + place + end - start];
    if (range[1] > bytes.length) return null;
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice(...range)));
    if (Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("") === sha256) return range;
  }
  return null;
}

/** Mark in the card of a source what the answer rests on. */
async function markEvidence(source, citations) {
  const bytes = new TextEncoder().encode(source.text);
  const found = await Promise.all(citations.map((each) => standing(source, bytes, each.evidence)));
  const ranges = found.filter(Boolean).sort((one, other) => one[0] - other[0]);
  if (!ranges.length) return;
  const said = (start, end) => new TextDecoder().decode(bytes.slice(start, end));
  const nodes = [];
  let last = 0;
  for (const [start, end] of ranges) {
    if (end <= last) continue;
    nodes.push(said(last, start), make("mark", { textContent: said(Math.max(last, start), end) }));
    last = end;
  }
  at(`source-${source.number}`)?.querySelector(".shown").replaceChildren(...nodes, said(last));
}

function sourceCard(source) {
  const [first, last] = source.line_range;
  const trail = [source.title, ...source.heading_path.filter((each) => each !== source.title)];
  const card = make("article", { id: `source-${source.number}`, className: "source", tabIndex: -1 },
    make("h3", { dir: "auto" }, make("span", { className: "soft", textContent: `[${source.number}] ` }), trail.join(" › ")),
    badges(
      source.expired && badge(`expired ${source.expires_at}`, true),
      source.age_stale && badge("overdue for verification", true),
    ),
    make("p", { className: "facts" },
      make("code", { textContent: `${source.pack}/${source.source_file}:${first === last ? first : `${first}–${last}`}` }),
      make("span", { textContent: source.verified_at ? `verified ${source.verified_at}` : "never verified" }),
      make("span", {}, "release ", make("code", { textContent: source.digest.slice(0, 12), title: source.digest })),
    ),
    make("details", {}, make("summary", { textContent: "What the model was shown" }), make("p", { className: "as-is shown", tabIndex: 0, dir: "auto", textContent: source.text })),
    reader(source.pack, source.id, "Read the document"),
  );
  card.setAttribute("aria-label", `Source ${source.number}`);
  return card;
}

/** What the check of citations found, in a list; sentences are cut. */
function findings(done, sources) {
  const quoted = (sentence) => make("q", { textContent: sentence.length > 120 ? `${sentence.slice(0, 119)}…` : sentence, dir: "auto" });
  const links = (numbers) => numbers.flatMap((number) => citation(number, sources));
  const listed = [
    ...done.unsupported.map((each) => make("li", { className: "warn" }, quoted(each.sentence), " is not supported by ", links(each.numbers),
      `: ${UNSUPPORTED[each.reason] || each.reason}.`,
      each.supported_by === null ? null : [" But ", citation(each.supported_by, sources), " supports it."])),
    ...done.invalid_citations.map(({ number }) => make("li", { textContent: `It cites a source ${number}, and there is none.` })),
    ...done.uncited.map((each) => make("li", {}, quoted(each.sentence), " cites no source.")),
  ];
  const checked = done.citations.length > 0 && done.citations.every((each) => each.supported !== null);
  if (!done.unsupported.length && checked) listed.unshift(make("li", { textContent: "Every sentence that cites is supported by its sources." }));
  listed.push(...done.missing.filter((each) => MISSING[each]).map((each) => make("li", { textContent: MISSING[each] })));
  return listed.length ? make("ul", { className: "findings" }, listed) : null;
}

const seconds = (milliseconds) => (milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`);

/** Small print: what it took, and by what name it is known. */
function account(done) {
  const { retrieval_ms: retrieval, ttft_ms: first, generation_ms: written, total_ms: total } = done.timings;
  const told = [
    `search ${seconds(retrieval)}`,
    first !== null && `first words after ${seconds(first)}`,
    written !== null && `written in ${seconds(written)}`,
    `in all ${seconds(total)}`,
    done.usage && `${count(done.usage.prompt_tokens, "token")} read, ${done.usage.completion_tokens.toLocaleString("en")} written`,
    done.cost_usd !== null && `${done.cost_usd.toPrecision(2)} USD`,
    done.receipt?.model && `model ${done.receipt.model}`,
  ];
  return make("p", { className: "facts small" }, told.filter(Boolean).map((each) => make("span", { textContent: each })),
    make("span", {}, "trace ", make("code", { textContent: done.trace_id })));
}

/** A button that copies an answer as `octavo verify-answer` takes it. */
function receipt(done, found) {
  if (!done.receipt || !navigator.clipboard) return null;
  const button = make("button", { type: "button", className: "link", textContent: "Copy the receipt" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(JSON.stringify({ ...done, ...found }, null, 2));
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy the receipt"; }, 1500);
  });
  return make("p", { className: "facts small" }, button, make("span", {}, "for ", make("code", { textContent: "octavo verify-answer answer.json --dist dist" })));
}

/** The place of an answer: its text, what is said of it, and its sources. */
class Page {
  constructor() {
    this.found = { pack: null, sources: [] };
    this.text = "";
    this.written = make("div", { className: "written" });
    this.written.setAttribute("aria-busy", "true");
    this.told = make("div");
    for (const spoken of [this.written, this.told]) spoken.setAttribute("aria-live", "polite");
    this.small = make("div");
    this.cards = make("div");
    this.drawn = 0;
    at("answer").replaceChildren(this.written, this.told, this.small, this.cards);
  }

  sources(found) {
    this.found = { pack: found.pack, sources: found.sources };
    if (!found.sources.length) return;
    say(`The model reads ${count(found.sources.length, "passage")}…`, true);
    this.cards.replaceChildren(make("h2", { textContent: "Sources" }), ...found.sources.map(sourceCard));
  }

  token({ text }) {
    if (!this.text) say("The model writes…", true);
    this.text += text;
    this.drawn ||= requestAnimationFrame(() => {
      this.drawn = 0;
      this.written.replaceChildren(...paragraphs(viewOf(this.text, this.found.sources)));
    });
  }

  done(done) {
    const { sources } = this.found;
    if (done.refused) {
      this.settle([]);
      this.told.append(notice(REASONS[done.reason] || done.answer), ...nearest(done.nearest));
    } else {
      this.settle(paragraphs(viewOf(done.answer, sources, done)));
      if (done.truncated) this.told.append(notice("Cut at its length: the model might have written more."));
      this.told.append(...[findings(done, sources)].filter(Boolean));
      for (const source of sources) markEvidence(source, done.citations.filter((each) => each.number === source.number));
    }
    this.small.append(...[account(done), receipt(done, this.found)].filter(Boolean));
    say(done.refused ? "No answer." : "Answered.");
  }

  error({ stage, message, partial, trace_id: trace }) {
    this.end(`It failed ${STAGES[stage] || ""}: ${message.replace(/\.$/, "")}.`, partial || this.text);
    this.small.append(make("p", { className: "facts small" }, make("span", {}, "trace ", make("code", { textContent: trace }))));
  }

  /** Say why there is no answer; what was written of it is none. */
  end(reason, partial) {
    this.settle(partial ? paragraphs(viewOf(partial, this.found.sources)) : []);
    this.written.classList.add("partial");
    this.told.append(notice(partial ? `${reason} What is written above is unchecked, and no whole answer.` : reason));
    say("");
  }

  settle(nodes) {
    cancelAnimationFrame(this.drawn);
    this.written.replaceChildren(...nodes);
    this.written.setAttribute("aria-busy", "false");
  }
}

/** Answer what is in the form, as it is written. */
async function answerQuestion() {
  const signal = begin("Looking for passages…");
  const shown = new Page();
  const body = { question: at("query").value, pack: at("pack").value || undefined };
  at("stop").hidden = false;
  try {
    let last = "";
    for await (const { name, data } of eventsOf(await request("ask", { method: "POST", signal, body: JSON.stringify(body) }))) {
      last = name;
      if (["sources", "token", "done", "error"].includes(name)) shown[name](data);
    }
    if (last !== "done" && last !== "error") shown.end("The connection ended before the answer did.", shown.text);
  } catch (error) {
    // another question may have taken its place
    if (signal !== searching.signal) return;
    shown.end(signal.aborted ? "Stopped." : error.message, shown.text);
  }
  if (signal !== searching.signal) return;
  if (document.activeElement === at("stop")) at("query").focus();
  at("stop").hidden = true;
}
