"use strict";
(() => {
  // Each incident: [topics, severities, rules, words, html or null where it already stands in the page].
  const incidents = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("incidents"), more = document.getElementById("more"), count = document.getElementById("f-count");
  const nodes = [...list.children], page = nodes.length;
  const field = (name) => document.getElementById("f-" + name);
  let limit = page, matching = [];
  const node = (i) => {
    if (!nodes[i]) {
      const holder = document.createElement("template");
      holder.innerHTML = incidents[i][4];
      nodes[i] = holder.content.firstElementChild;
    }
    return nodes[i];
  };
  const fits = ([topics, severities, rules, words], want) =>
    (!want.topic || topics.includes(want.topic)) && (!want.severity || severities.includes(want.severity)) &&
    (!want.rule || rules.includes(want.rule)) && want.words.every((word) => words.includes(word));
  const show = () => {
    list.replaceChildren(...matching.slice(0, limit).map(node));
    more.hidden = matching.length <= limit;
    count.textContent = matching.length + (matching.length === 1 ? " incident" : " incidents");
  };
  const filter = () => {
    const want = { topic: field("topic").value, severity: field("severity").value, rule: field("rule").value,
      words: field("text").value.toLowerCase().split(/\s+/).filter(Boolean) };
    matching = [...incidents.keys()].filter((i) => fits(incidents[i], want));
    limit = page;
    show();
  };
  for (const name of ["text", "topic", "severity", "rule"]) field(name).addEventListener("input", filter);
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit += page; show(); });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const command = button.parentElement.querySelector("pre");
    try { await navigator.clipboard.writeText(command.textContent); button.textContent = "Copied"; }
    catch { getSelection().selectAllChildren(command); button.textContent = "Selected: press Ctrl+C"; }
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  matching = [...incidents.keys()];
  more.hidden = matching.length <= page;
})();
