"use strict";
(() => {
  // Each incident: [anchor, topics, severities, rules, words, html or null where it already stands in the page].
  const incidents = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("incidents"), more = document.getElementById("more");
  const form = document.querySelector(".filters"), count = document.getElementById("f-count"), all = document.getElementById("f-all");
  const nodes = [...list.children], page = nodes.length;
  const places = new Map(incidents.map(([anchor], i) => [anchor, i]));
  const filters = ["text", "topic", "severity", "rule"];
  const field = (name) => document.getElementById("f-" + name);
  let limit = page, matching = [...incidents.keys()];

  const node = (i) => {
    if (!nodes[i]) {
      const holder = document.createElement("template");
      holder.innerHTML = incidents[i][5];
      nodes[i] = holder.content.firstElementChild;
    }
    return nodes[i];
  };
  const fits = ([, topics, severities, rules, words], want) =>
    (!want.topic || topics.includes(want.topic)) && (!want.severity || severities.includes(want.severity)) &&
    (!want.rule || rules.includes(want.rule)) && want.words.every((word) => words.includes(word));
  const show = () => {
    list.replaceChildren(...matching.slice(0, limit).map(node));
    more.hidden = matching.length <= limit;
    all.hidden = matching.length === incidents.length;
    const number = matching.length.toLocaleString("en");
    count.textContent = (all.hidden ? number : number + " of " + incidents.length.toLocaleString("en")) + (matching.length === 1 && all.hidden ? " incident" : " incidents");
  };
  const filter = () => {
    const want = { topic: field("topic").value, severity: field("severity").value, rule: field("rule").value,
      words: field("text").value.toLowerCase().split(/\s+/).filter(Boolean) };
    matching = [...incidents.keys()].filter((i) => fits(incidents[i], want));
    limit = page;
    show();
  };
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    const first = limit;
    limit += page;
    show();
    node(matching[first]).focus({ preventScroll: true });
  });

  // A link may lead to an incident that a filter hides or that is not laid out yet.
  const reveal = () => {
    const i = places.get(location.hash.slice(1));
    if (i === undefined) return;
    if (!matching.includes(i)) {
      for (const name of filters) field(name).value = "";
      matching = [...incidents.keys()];
    }
    limit = Math.max(limit, matching.indexOf(i) + 1);
    show();
    node(i).scrollIntoView();
    node(i).focus({ preventScroll: true });
  };
  addEventListener("hashchange", reveal);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const command = button.previousElementSibling;
    try { await navigator.clipboard.writeText(command.textContent); button.textContent = "Copied"; }
    catch { getSelection().selectAllChildren(command); button.textContent = "Press Ctrl+C"; }
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((details) => { details.open = false; }));
  show();
  if (location.hash) reveal();
})();
