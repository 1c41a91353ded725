// The pages' script: plots with their menus, tables and downloads; files of data that are loaded when asked for; the theme.
"use strict";

const LogInfer = (() => {
  const root = document.body.dataset.root;
  const charts = new Map();
  const waiting = new Map();
  const received = new Map();

  // -- data ------------------------------------------------------------------------------------

  // A page that was opened from a file may not fetch, but it may load scripts: each hands its value over here.
  function receive(path, value) {
    received.set(path, value);
    for (const done of waiting.get(path) || []) done(value);
    waiting.delete(path);
  }

  function load(path) {
    if (received.has(path)) return Promise.resolve(received.get(path));
    return new Promise((done, failed) => {
      if (waiting.has(path)) { waiting.get(path).push(done); return; }
      waiting.set(path, [done]);
      const script = document.createElement("script");
      script.src = root + path;
      script.onerror = () => { waiting.delete(path); failed(new Error("cannot load " + path)); };
      document.head.append(script);
    });
  }

  function expand(data) {
    const words = data.words || {}; // texts that are written once, the rows hold their places
    const value = (field, found) => (words[field] && found !== null ? words[field][found] : found);
    return data.rows.map((row) => Object.fromEntries(data.fields.map((field, place) => [field, value(field, row[place])])));
  }

  // -- themes ----------------------------------------------------------------------------------

  function dark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function remembered(value) {
    try { // A page from a file may have nowhere to remember.
      if (value === undefined) return localStorage.getItem("loginfer-theme");
      localStorage.setItem("loginfer-theme", value);
    } catch { /* then it is forgotten */ }
    return null;
  }

  function look() {
    const ink = dark() ? "#e3e7eb" : "#1b1f24", line = dark() ? "#343b43" : "#d7dce1";
    const words = { labelColor: ink, titleColor: ink };
    return {
      background: null, font: "system-ui, sans-serif", view: { stroke: line },
      axis: { ...words, gridColor: line, domainColor: line, tickColor: line },
      legend: words, header: words, title: { color: ink }, text: { color: ink },
    };
  }

  // -- plots -----------------------------------------------------------------------------------

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.value = JSON.parse(figure.querySelector("script").textContent);
      this.rows = expand(this.value.data);
      this.menus = this.value.choices.map((choice) => this.menu(choice));
      this.details = figure.querySelector("details");
      this.details.addEventListener("toggle", () => this.table());
      for (const button of figure.querySelectorAll("[data-download]"))
        button.addEventListener("click", () => this.download(button.dataset.download));
    }

    menu(choice) {
      const label = document.createElement("label"), select = document.createElement("select");
      const options = choice.everything ? [["", "all"], ...choice.options] : choice.options;
      for (const [value, text] of options) select.append(new Option(text, value));
      select.dataset.field = choice.field;
      if (choice.together) select.dataset.together = choice.field;
      select.addEventListener("change", () => this.follow(select));
      label.append(choice.title, select);
      this.figure.querySelector(".choices").append(label);
      return select;
    }

    // Menus that belong together show the same choice.
    follow(select) {
      this.draw();
      if (!select.dataset.together) return;
      for (const chart of charts.values())
        for (const menu of chart.menus)
          if (menu !== select && menu.dataset.together === select.dataset.together && menu.value !== select.value) {
            menu.value = select.value;
            chart.draw();
          }
    }

    shown() {
      const kept = this.menus.filter((menu) => menu.value !== "" || !menu.options[0] || menu.options[0].value !== "");
      return this.rows.filter((row) => kept.every((menu) => String(row[menu.dataset.field]) === menu.value));
    }

    // One drawing after the other: a second one must not overtake the first.
    draw() {
      this.busy = (this.busy || Promise.resolve()).then(() => this.embed());
      return this.busy;
    }

    async embed() {
      const place = this.figure.querySelector(".plot"), rows = this.shown();
      if (this.view) this.view.finalize();
      this.figure.hidden = !this.rows.length; // what has nothing on any choice of its menus
      if (!rows.length) {
        this.view = null;
        place.replaceChildren("nothing to show");
        this.table();
        return;
      }
      // On a phone legends have one column: more would be cut.
      const phone = place.clientWidth < 480, narrow = (key, value) => (key === "columns" && phone ? 1 : value);
      const spec = { ...JSON.parse(JSON.stringify(this.value.spec), narrow), data: { values: rows } };
      spec.config = look();
      if (phone) spec.config.legend = { ...spec.config.legend, layout: { bottom: { direction: "vertical", anchor: "start" } } };
      for (const [part, more] of Object.entries(this.value.spec.config)) spec.config[part] = { ...spec.config[part], ...more };
      const made = await vegaEmbed(place, spec, { actions: false, renderer: "svg", mode: "vega-lite" });
      this.view = made.view;
      this.table();
    }

    replace(data) {
      this.rows = expand(data);
      return this.draw();
    }

    table() {
      if (!this.details.open) return;
      const table = document.createElement("table"), head = table.createTHead().insertRow();
      const fields = Object.keys(this.value.columns);
      for (const field of fields) {
        const cell = document.createElement("th");
        cell.textContent = this.value.columns[field];
        head.append(cell);
      }
      const body = table.createTBody();
      for (const row of this.shown().slice(0, 2000)) {
        const line = body.insertRow();
        for (const field of fields) line.insertCell().textContent = shown(row[field]);
      }
      this.details.querySelector(".scroll").replaceChildren(table);
    }

    csv() {
      const fields = Object.keys(this.value.columns);
      const quoted = (value) => {
        let text = value === null || value === undefined ? "" : String(value);
        if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text; // no formulas in spreadsheets
        return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
      };
      const lines = [fields.map((field) => quoted(this.value.columns[field]))];
      for (const row of this.shown()) lines.push(fields.map((field) => quoted(row[field])));
      return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
    }

    async download(kind) {
      const name = `${this.value.name}.${kind}`;
      if (kind === "csv") { save(name, URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }))); return; }
      if (!this.view) return;
      const paper = getComputedStyle(document.body).getPropertyValue("--paper").trim();
      const before = this.view.background();
      this.view.background(paper);
      save(name, await this.view.toImageURL(kind, kind === "png" ? 2 : 1));
      this.view.background(before).run();
    }
  }

  function shown(value) {
    if (value === null || value === undefined) return "";
    return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)).toString() : String(value);
  }

  function save(name, address) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
  }

  // -- menus that load data --------------------------------------------------------------------

  async function pick(path) {
    const value = await load(path);
    for (const [name, text] of Object.entries(value.texts || {}))
      for (const element of document.querySelectorAll(`[data-text="${CSS.escape(name)}"]`)) element.textContent = text;
    const drawn = Object.entries(value.charts || {}).map(([name, data]) => charts.get(name)?.replace(data));
    await Promise.all(drawn);
  }

  // -- tables ----------------------------------------------------------------------------------

  function sortable(table) {
    for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
      head.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[place].dataset.sort ?? row.cells[place].textContent;
        const numeric = head.classList.contains("number") || head.classList.contains("share");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          if ((x === "") !== (y === "")) return x === "" ? 1 : -1; // what is missing comes last
          const order = numeric ? Number(x) - Number(y) : x.localeCompare(y);
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows);
      });
    }
  }

  function searchable(grid) {
    const field = grid.querySelector('input[type="search"]');
    if (!field) return;
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of grid.querySelectorAll("tbody tr")) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }

  // -- the page --------------------------------------------------------------------------------

  async function start() {
    const chosen = remembered();
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
    document.getElementById("theme").addEventListener("click", () => {
      document.documentElement.dataset.theme = dark() ? "light" : "dark";
      remembered(document.documentElement.dataset.theme);
      for (const chart of charts.values()) chart.draw();
    });
    for (const grid of document.querySelectorAll(".grid")) { searchable(grid); sortable(grid.querySelector("table")); }
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const chart = new Chart(figure);
      charts.set(chart.value.name, chart);
    }
    const menu = document.querySelector("select[data-picker]");
    const drawn = [...charts.values()].map((chart) => chart.draw());
    await Promise.all(drawn);
    if (menu) {
      menu.addEventListener("change", () => pick(menu.value));
      await pick(menu.value);
    }
    document.body.dataset.ready = "yes";
  }

  return { receive, load, expand, charts, start, dark };
})();

LogInfer.start();
