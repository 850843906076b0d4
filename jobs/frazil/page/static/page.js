"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // Filter as you type. Without this script the form asks the server.
  const form = document.querySelector("form.search");
  if (form) {
    const field = form.querySelector("#q");
    const found = form.querySelector("#found");
    const buttons = [...form.querySelectorAll("button[name=state]")];
    const bodies = [...document.querySelectorAll("table.pipelines tbody")];
    const total = Number(buttons[0].querySelector("span").textContent);
    const apply = () => {
      const text = field.value.trim().toLowerCase();
      const state = (buttons.find((b) => b.getAttribute("aria-pressed") === "true") || {}).value || "";
      let shown = 0;
      for (const body of bodies) {
        const fits = (!state || body.dataset.state === state) && body.dataset.text.toLowerCase().includes(text);
        body.hidden = !fits;
        shown += fits;
      }
      found.textContent = `${shown} of ${total}`;
      if (location.protocol === "file:") return;
      const asked = new URLSearchParams();
      if (text) asked.set("q", field.value.trim());
      if (state) asked.set("state", state);
      history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    };
    field.addEventListener("input", apply);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.submitter && event.submitter.name === "state" && document.activeElement !== field) {
        for (const b of buttons) b.setAttribute("aria-pressed", String(b === event.submitter));
      }
      apply();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input")) return;
      event.preventDefault();
      field.focus();
    });
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  const age = document.querySelector("#age");
  if (age) {
    const begin = performance.now() - 1000 * Number(age.dataset.age);
    setInterval(() => {
      const seconds = Math.round((performance.now() - begin) / 1000);
      age.textContent = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
    }, 1000);
  }

  const live = document.querySelector("#live");
  if (live) {
    const isOn = () => sessionStorage.getItem("live") === "on";
    const show = () => live.setAttribute("aria-pressed", String(isOn()));
    live.addEventListener("click", () => { sessionStorage.setItem("live", isOn() ? "off" : "on"); show(); });
    show();
    setInterval(() => { if (isOn() && document.visibilityState === "visible" && !document.activeElement.closest("input")) location.reload(); }, 15000);
  }
  if (document.querySelector("#reading")) setTimeout(() => location.reload(), 2000);
})();
