// The explorer: filters test triples of a benchmark and shows one of them with all that is known about it.
// Names come from anybody's data: they only ever become text, never markup.
"use strict";

(() => {
  const PAGE = 50;
  const root = document.body.dataset.root;
  const place = document.getElementById("explorer");
  const form = place.querySelector("form"), fields = form.elements;
  const status = place.querySelector(".status"), progress = place.querySelector("progress");
  const body = place.querySelector("tbody"), pager = place.querySelector(".pager"), detail = place.querySelector(".detail");

  let slug = null;    // the chosen benchmark
  let index = null;   // its index
  let shards = [];    // its shards, as far as they are loaded
  let found = [];     // what the filters leave: pairs of a shard's number and a row, or null for all triples
  let page = 0;
  let shown = null;   // the place of the triple that is shown
  let turn = 0;       // a later request makes earlier ones stop

  // -- small things ----------------------------------------------------------------------------

  function make(tag, text, kind) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  }

  function link(text, address) {
    const element = make("a", text);
    element.href = root + address;
    return element;
  }

  // As in Python: what people call a name, its last part, its last two parts, …, all of it.
  const labels = new Map();
  const LETTERS = 36;

  function forms(name) {
    const parts = [], label = labels.get(name);
    if (/^(?:(?:https?|ftp|file):\/\/|urn:|\/)[^\s<>"]+$/.test(name))
      for (const mark of name.replace(/[/#]+$/, "").matchAll(/[/#]+|(?<=urn):/g)) parts.unshift(name.slice(mark.index + mark[0].length));
    if (label) parts.unshift(label, `${label} (${parts[0] ?? name})`);
    const cut = (text) => {
      const letters = [...text]; // not halves of them
      return letters.length <= LETTERS ? text : [...letters.slice(0, LETTERS >> 1), "…", ...letters.slice(-(LETTERS >> 1))].join("");
    };
    return [...[...parts, name].map(cut), name];
  }

  // The first forms of names with which no two of them look the same.
  function short(names) {
    const all = new Map([...new Set(names)].map((name) => [name, forms(name)]));
    for (;;) {
      const uses = new Map();
      for (const [form] of all.values()) uses.set(form, (uses.get(form) || 0) + 1);
      const again = [...all.values()].filter((rest) => uses.get(rest[0]) > 1 && rest.length > 1);
      if (!again.length) return new Map([...all].map(([name, rest]) => [name, rest[0]]));
      for (const rest of again) rest.shift();
    }
  }

  function learn(names, known) {
    for (const [i, label] of Object.entries(known)) labels.set(names[i], label);
  }

  // Writes the names of the whole page; they stay in the titles.
  function write() {
    const elements = [...place.querySelectorAll("[data-name]")], shownAs = short(elements.map((element) => element.dataset.name));
    for (const element of elements) element.textContent = shownAs.get(element.dataset.name);
  }

  function shortRule(text) {
    return text.replace(/<?https?:\/\/[^\s,()<>"]*[#/]([\w.-]+)>?/g, "$1");
  }

  function named(tag, name) {
    const element = make(tag);
    element.dataset.name = name;
    element.title = name;
    return element;
  }

  function triple(names) {
    const parts = names.map((name) => named("span", name));
    return ["(", parts[0], ", ", parts[1], ", ", parts[2], ")"];
  }

  function figure(number) {
    return number.toLocaleString("en");
  }

  // -- data ------------------------------------------------------------------------------------

  const folder = () => `data/explorer/${slug}/`;

  function unfold(coded) {
    const names = [];
    let before = "";
    for (let i = 0; i < coded.length; i += 2) {
      before = before.slice(0, coded[i]) + coded[i + 1];
      names.push(before);
    }
    return names;
  }

  async function shard(number) {
    if (!shards[number]) {
      const wanted = index, value = await LogInfer.load(index.shards[number][0]);
      if (wanted !== index) return null;
      shards[number] = { ...value, names: unfold(value.names), texts: null };
      learn(shards[number].names, value.labels);
    }
    return shards[number];
  }

  // What is searched: made when it is needed first.
  function texts(part) {
    if (!part.texts) {
      const words = (name) => `${name} ${labels.get(name) ?? ""}`.toLowerCase();
      const small = part.names.map(words), relations = index.relations.map(words);
      part.texts = part.s.map((s, row) => `${small[s]} ${relations[part.r[row]]} ${small[part.o[row]]}`);
    }
    return part.texts;
  }

  // -- filters ---------------------------------------------------------------------------------

  function wanted() {
    const words = fields.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const value = (name) => fields[name].value;
    const number = (name) => (value(name) === "" ? null : Number(value(name)));
    const decided = value("system") === "" ? "" : value("decided");
    return {
      words, label: value("label"), relation: number("relation"), rule: number("rule"), system: number("system"), decided,
      disagree: fields.disagree.checked,
    };
  }

  const anything = (w) => w.words.length || w.label || w.relation !== null || w.rule !== null || w.decided || w.disagree;

  function rules(part, row) {
    const why = part.why[row];
    if (!why) return [];
    return part.label[row] === "1" ? why.map((derivation) => derivation[0]) : why.slice(2, 3);
  }

  function differs(part, row) {
    return part.right.some((letters) => letters[row] === "1") && part.right.some((letters) => letters[row] === "0");
  }

  function matching(part, w) {
    const lines = w.words.length ? texts(part) : null, rows = [];
    for (let row = 0; row < part.s.length; row++) {
      if (w.label && part.label[row] !== w.label) continue;
      if (w.relation !== null && part.r[row] !== w.relation) continue;
      if (w.decided && part.right[w.system][row] !== w.decided) continue;
      if (w.disagree && !differs(part, row)) continue;
      if (w.rule !== null && !rules(part, row).includes(w.rule)) continue;
      if (lines && !w.words.every((word) => lines[row].includes(word))) continue;
      rows.push(row);
    }
    return rows;
  }

  const kept = () => index.shards.reduce((sum, entry) => sum + entry[3], 0);

  async function filter() {
    const mine = ++turn, w = wanted();
    place.dataset.ready = "no";
    for (const button of pager.querySelectorAll("button")) button.disabled = true;
    page = 0;
    if (anything(w)) {
      const pairs = [];
      progress.hidden = false;
      for (let number = 0; number < index.shards.length; number++) {
        progress.value = number / index.shards.length;
        const part = await shard(number);
        if (mine !== turn) return;
        for (const row of matching(part, w)) pairs.push([number, row]);
      }
      progress.hidden = true;
      found = pairs;
    } else {
      progress.hidden = true;
      found = null;
    }
    await list(mine);
  }

  // -- the list --------------------------------------------------------------------------------

  // The rows of a page: only the shards that hold them are loaded.
  function rowsOf(start, stop) {
    if (found) return found.slice(start, stop);
    const pairs = [];
    let before = 0;
    for (const [number, entry] of index.shards.entries()) {
      for (let row = Math.max(start - before, 0); row < entry[3] && before + row < stop; row++) pairs.push([number, row]);
      before += entry[3];
    }
    return pairs;
  }

  async function list(mine) {
    const total = found ? found.length : kept(), pages = Math.max(1, Math.ceil(total / PAGE));
    const pairs = rowsOf(page * PAGE, (page + 1) * PAGE);
    const lines = [];
    for (const [number, row] of pairs) {
      const part = await shard(number);
      if (mine !== turn) return;
      lines.push(line(part, row));
    }
    body.replaceChildren(...lines);
    write();
    const all = index.positives + index.negatives;
    const from = kept() < all ? `${figure(kept())} of ${figure(all)} test triples that were chosen evenly` : `${figure(all)} test triples`;
    status.textContent = found ? `${figure(total)} of the ${from} match.` : `All ${from}.`;
    pager.querySelector("span").textContent = `page ${page + 1} of ${figure(pages)}`;
    pager.querySelector('[data-step="-1"]').disabled = page === 0;
    pager.querySelector('[data-step="1"]').disabled = page + 1 >= pages;
    place.dataset.ready = "yes";
  }

  function line(part, row) {
    const element = make("tr"), number = part.places[row];
    const known = part.right.filter((letters) => letters[row] !== "?");
    const names = [part.names[part.s[row]], index.relations[part.r[row]], part.names[part.o[row]]];
    const cells = names.map((name, i) => named(i ? "td" : "button", name));
    cells.push(label(part, row, "td"), make("td", `${known.filter((l) => l[row] === "1").length}/${known.length}`, "number"));
    const subject = make("td");
    subject.title = names[0];
    cells[0].className = "plain";
    cells[0].type = "button";
    subject.append(cells[0]);
    cells[0] = subject;
    element.append(...cells);
    element.dataset.place = number;
    if (number === shown) element.setAttribute("aria-selected", "true");
    element.addEventListener("click", () => choose(number));
    return element;
  }

  function label(part, row, tag) {
    const yes = part.label[row] === "1";
    return make(tag, yes ? "positive" : "negative", yes ? "ok" : "error");
  }

  // -- one triple ------------------------------------------------------------------------------

  function choose(number) {
    shown = number;
    const address = `#benchmark=${encodeURIComponent(slug)}&triple=${number}`;
    if (location.hash !== address) location.hash = address; // the listener shows it
    else show();
  }

  async function show() {
    for (const row of body.rows) row.toggleAttribute("aria-selected", Number(row.dataset.place) === shown);
    const about = index, number = index.shards.findIndex((entry) => entry[1] <= shown && shown <= entry[2]);
    const part = number < 0 ? null : await shard(number);
    if (about !== index) return; // another benchmark was chosen meanwhile
    const row = part ? part.places.indexOf(shown) : -1;
    if (row < 0) {
      detail.replaceChildren(make("p", "This triple is not among those that were chosen for the explorer.", "remark"));
    } else {
      const heading = make("h2");
      const names = [part.names[part.s[row]], index.relations[part.r[row]], part.names[part.o[row]]];
      heading.append(label(part, row, "span"), ...triple(names));
      heading.firstChild.classList.add("tag");
      detail.replaceChildren(heading);
      if (names.some((name) => forms(name)[0] !== name)) detail.append(make("p", names.join("  "), "remark whole"));
      detail.append(...story(part, row), make("h3", "Systems"), systems(part, row));
      const seeds = index.systems.some((system) => system.seeds > 1);
      if (seeds) detail.append(make("p", "Of systems with several seeds the smallest seed is shown.", "remark"));
    }
    write();
    detail.hidden = false;
    detail.dataset.place = shown;
    if (matchMedia("(max-width: 64rem)").matches) detail.scrollIntoView({ block: "start" });
  }

  function systems(part, row) {
    const table = make("table", undefined, "bars"), head = table.createTHead().insertRow();
    for (const title of ["system", "rank", "score", "threshold", "decision"]) head.append(make("th", title));
    const lines = table.createTBody();
    for (const [number, system] of index.systems.entries()) {
      const line = lines.insertRow(), right = part.right[number][row], rank = part.ranks[number][row] / 10;
      const threshold = system.threshold && (system.threshold.own[part.r[row]] || system.threshold.all);
      line.insertCell().append(link(system.name, system.page));
      line.insertCell().append(bar(rank, threshold ? threshold[1] / 10 : null, right));
      line.insertCell().textContent = part.scores[number][row];
      line.insertCell().textContent = threshold ? threshold[0] : "none";
      const predicted = (part.label[row] === "1") === (right === "1") ? "true" : "false";
      const said = make("span", right === "?" ? "none" : `${right === "1" ? "✓" : "✗"} ${predicted}`, right === "1" ? "ok" : "error");
      said.title = right === "?" ? "no threshold" : right === "1" ? "right" : "wrong";
      line.insertCell().append(said);
    }
    const scroll = make("div", undefined, "scroll");
    scroll.append(table);
    return scroll;
  }

  function bar(rank, threshold, right) {
    const track = make("div", undefined, "bar"), fill = make("div", undefined, right === "1" ? "fill right" : right === "0" ? "fill wrong" : "fill");
    fill.style.width = `${rank}%`;
    track.append(fill);
    if (threshold !== null) {
      const mark = make("div", undefined, "mark");
      mark.style.left = `${threshold}%`;
      track.append(mark);
    }
    track.append(make("span", rank.toFixed(0)));
    track.title = threshold === null ? `rank ${rank}` : `rank ${rank}, threshold at ${threshold}`;
    return track;
  }

  // -- why -------------------------------------------------------------------------------------

  const ruleText = (rule) => shortRule(`${rule.parts.join(", ")} -> ${rule.head}`);

  function story(part, row) {
    const why = part.why[row];
    if (!why) {
      const told = index.folder
        ? "The benchmark does not tell where this triple came from."
        : `The folder of ${index.own} was not given: rules and witnesses are not known. Add it to the command.`;
      return [make("p", told, "remark")];
    }
    return part.label[row] === "1" ? why.map((derivation) => derived(part, derivation)) : [origin(why)];
  }

  function derived(part, [number, ...witness]) {
    const rule = index.rules[number], element = make("div", undefined, "why");
    const sentence = make("p", `Follows by rule ${number}: `);
    sentence.append(make("code", ruleText(rule)));
    element.append(sentence);
    if (!witness.length) return element;
    const name = (term) => (typeof term === "number" ? part.names[witness[term]] : term);
    const premises = make("ul");
    for (const [s, relation, o] of rule.atoms) {
      const item = make("li", "because ");
      item.append(...triple([name(s), relation, name(o)]));
      premises.append(item);
    }
    const values = make("p", "Witness: ", "remark");
    for (const [i, variable] of rule.variables.entries()) values.append(`${i ? ", " : ""}${variable} = `, named("span", part.names[witness[i]]));
    element.append(premises, values);
    return element;
  }

  function origin([source, position, number, mask]) {
    const element = make("div", undefined, "why"), kind = index.sources[source], where = index.positions[position];
    const rule = number >= 0 ? index.rules[number] : null;
    if ((kind === "sub-rule" || kind === "near-miss") && rule) {
      const keeps = rule.parts.filter((_, i) => mask >> i & 1), drops = rule.parts.filter((_, i) => !(mask >> i & 1));
      const near = kind === "near-miss", parts = near ? rule.parts : keeps;
      const sentence = make("p", `A ${near ? "near miss" : "conclusion of a sub-rule"} of rule ${number}: `);
      sentence.append(make("code", shortRule(`${parts.join(", ")} -> ${rule.head}`)));
      const missing = make("p", near ? "It would follow but for " : "The rule also asks for ");
      missing.append(make("code", shortRule(drops.join(", "))));
      element.append(sentence, missing);
      return element;
    }
    const told = {
      relevance: "Any constants of the rules' support, with the relation of a head.",
      position: `A conclusion with ${where === "either" ? "subject or object" : where ? "the " + where : "a constant"} replaced.`,
      ...Object.fromEntries(["subject", "relation", "object"].map((part) => [part, `A positive with a random ${part}.`])),
    };
    element.append(make("p", told[kind] || "Where this negative came from is not known."));
    return element;
  }

  // -- the page --------------------------------------------------------------------------------

  function options(select, entries) {
    select.replaceChildren(new Option("any", ""), ...entries.map(([value, text]) => new Option(text, value)));
  }

  async function open(wantedSlug) {
    const mine = ++turn;
    place.dataset.ready = "no";
    slug = wantedSlug;
    fields.benchmark.value = slug;
    shown = null;
    detail.hidden = true;
    let value;
    try {
      value = await LogInfer.load(`${folder()}index.js`);
    } catch (problem) {
      status.textContent = `${problem.message}: this report has no such benchmark, or the file is missing.`;
      return;
    }
    if (mine !== turn) return;
    index = value;
    shards = [];
    labels.clear();
    learn(index.relations, index.labels);
    const shownAs = short(index.relations), relations = index.asked.map((i) => [i, shownAs.get(index.relations[i])]);
    options(fields.relation, relations.sort((a, b) => a[1].localeCompare(b[1])));
    options(fields.rule, index.rules.map((rule, i) => [i, `${i}: ${ruleText(rule)}`]));
    options(fields.system, index.systems.map((system, i) => [i, system.name]));
    await filter();
  }

  async function follow() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const first = fields.benchmark.options[0];
    if (!first) { status.textContent = "There is nothing to explore."; return; }
    const known = [...fields.benchmark.options].some((option) => option.value === asked.get("benchmark"));
    const wantedSlug = known ? asked.get("benchmark") : slug || first.value;
    if (wantedSlug !== slug) await open(wantedSlug);
    const number = asked.get("triple");
    if (index && number !== null && /^\d+$/.test(number)) {
      shown = Number(number);
      await show();
    }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target === fields.benchmark) { location.hash = `#benchmark=${encodeURIComponent(fields.benchmark.value)}`; return; }
    filter();
  });
  for (const button of pager.querySelectorAll("button"))
    button.addEventListener("click", () => { page += Number(button.dataset.step); list(++turn); });
  addEventListener("hashchange", follow);
  follow();
})();
