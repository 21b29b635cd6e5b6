"use strict";

// Theme: what was chosen on this browser, else the system's.
(() => {
  const KEY = "memex-theme";
  const CHOICES = ["auto", "light", "dark"];
  const root = document.documentElement;

  const chosen = () => {
    const value = localStorage.getItem(KEY);
    return CHOICES.includes(value) ? value : "auto";
  };
  const apply = (choice) => {
    if (choice === "auto") delete root.dataset.theme;
    else root.dataset.theme = choice;
  };

  apply(chosen());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme-toggle");
    if (!button) return;
    const label = () => { button.textContent = `Theme: ${chosen()}`; };
    button.hidden = false;
    label();
    button.addEventListener("click", () => {
      const next = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length];
      localStorage.setItem(KEY, next);
      apply(next);
      label();
    });
  });
})();

// "/" goes to the page's search box, unless one is typing.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const search = document.querySelector("input[type=search]");
  if (!search) return;
  event.preventDefault();
  search.focus();
  search.select();
});

// HTMX leaves the page as it is when a request fails: say so.
(() => {
  const say = (text) => {
    const message = document.createElement("p");
    message.className = "message error";
    message.textContent = text;
    document.getElementById("messages").replaceChildren(message);
  };
  document.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (status === 403) say("This page is out of date: reload it and try again.");
    else say(`That did not work (error ${status}).`);
  });
  document.addEventListener("htmx:sendError", () => say("Memex does not answer. Is it still running?"));
})();
