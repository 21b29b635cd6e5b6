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

// A search box and what it found: arrow keys go through both, Enter opens a hit.
document.addEventListener("keydown", (event) => {
  if (!["ArrowDown", "ArrowUp"].includes(event.key)) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing) return;
  const box = document.querySelector("input[data-results]");
  if (!box?.value) return;
  const places = [box, ...document.querySelectorAll(box.dataset.results)];
  const at = places.indexOf(document.activeElement);
  const next = places[at + (event.key === "ArrowDown" ? 1 : -1)];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
});

// While a word is being composed (as Chinese is typed) its letters are not what is searched for.
document.addEventListener("input", (event) => {
  if (event.isComposing && event.target.matches("input[type=search]")) event.stopImmediatePropagation();
}, true);
document.addEventListener("compositionend", (event) => {
  if (event.target.matches("input[type=search]")) event.target.dispatchEvent(new Event("input", { bubbles: true }));
});

// A small screen scrolls the navigation to where one is, and folds filters that are not in use.
document.addEventListener("DOMContentLoaded", () => {
  const nav = document.getElementById("site-nav");
  const here = nav?.querySelector("[aria-current]");
  if (here) nav.scrollLeft = here.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
  if (matchMedia("(max-width: 40rem)").matches) {
    for (const fold of document.querySelectorAll("details.fold:not([data-in-use])")) fold.open = false;
  }
});

// HTMX leaves the page as it is when a request fails: say so, and put a switch back to what it was.
(() => {
  const FAILURES = {
    0: "Memex does not answer: nothing was changed. Is it still running?",
    403: "Nothing was changed: this page is out of date. Reload it and try again.",
    404: "Nothing was changed: it is not here any more. It may have been forgotten or purged meanwhile; reload the page.",
  };
  const messages = () => document.getElementById("messages");
  const say = (text) => {
    const toast = document.createElement("div");
    toast.className = "toast";
    const message = document.createElement("p");
    message.className = "message error";
    message.setAttribute("role", "alert");
    message.textContent = text;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "quiet";
    close.dataset.dismiss = "";
    close.textContent = "Close";
    toast.append(message, close);
    messages().replaceChildren(toast);
  };
  const failed = (event, status) => {
    say(FAILURES[status] || `That went wrong in Memex (error ${status}). The terminal that runs it says why.`);
    event.detail.elt.closest("form[data-reset-on-failure]")?.reset();
  };
  document.addEventListener("htmx:responseError", (event) => failed(event, event.detail.xhr.status));
  document.addEventListener("htmx:sendError", (event) => failed(event, 0));
  document.addEventListener("htmx:timeout", (event) => failed(event, 0));
  // Who is signed out is led to another page, which is no part of this one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!new URL(event.detail.xhr.responseURL || location.href).pathname.startsWith("/signin/")) return;
    event.detail.shouldSwap = false;
    failed(event, 403);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-dismiss]")) messages().replaceChildren();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelector("#messages .toast")?.remove();
  });
})();

// A question that a newer one replaces is no error, though HTMX would write it to the console as one.
document.addEventListener("DOMContentLoaded", () => {
  if (!window.htmx) return;
  window.htmx.logger = (_element, name, detail) => {
    if (name === "htmx:sendAbort" || (name === "htmx:afterRequest" && detail.xhr?.status === 0)) delete detail.error;
  };
});

// What is loaded before an event that is being read does not move it.
(() => {
  let kept = null;
  let top = 0;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const more = event.detail.target.closest(".more");
    kept = more?.querySelector("#earlier") ? more.nextElementSibling : null;
    top = kept ? kept.getBoundingClientRect().top : 0;
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (!kept) return;
    window.scrollBy({ top: kept.getBoundingClientRect().top - top, behavior: "instant" });
    kept = null;
  });
})();

// A session that is being read for the first time is shown as soon as it is there.
document.addEventListener("job-ended", () => {
  if (document.querySelector("[data-reload-after-job]")) location.reload();
});

// How many records are chosen. (The bar itself is shown by the style sheet.)
document.addEventListener("change", (event) => {
  if (!event.target.matches(".pick input")) return;
  const count = document.querySelectorAll(".pick input:checked").length;
  const said = document.querySelector("#bulk [data-count]");
  if (!said) return;
  said.hidden = false;
  said.textContent = `${count} chosen`;
});

// What was done with the chosen ones is done: none is chosen any more.
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.target.id === "bulk" && event.detail.successful) event.target.reset();
});

// On a wide screen a record opens beside the list; with Ctrl, the middle button or a narrow screen as a page.
(() => {
  const wide = matchMedia("(min-width: 75rem)");
  const pane = () => document.getElementById("pane");
  const mark = (row) => {
    for (const each of document.querySelectorAll(".record[aria-current]")) each.removeAttribute("aria-current");
    row?.setAttribute("aria-current", "true");
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".record h2 a, .record .place a[data-pane]");
    if (!link || !pane() || !wide.matches) return;
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const address = new URL(link.href);
    address.searchParams.set("pane", "1");
    const row = link.closest(".record");
    window.htmx.ajax("GET", address.pathname + address.search, { target: "#pane", swap: "innerHTML" }).then(() => {
      pane().hidden = false;
      pane().scrollTop = 0;
      mark(row);
      pane().querySelector("#passage")?.scrollIntoView({ block: "center" });
    });
  });
  const close = () => {
    if (!pane() || pane().hidden) return;
    pane().hidden = true;
    pane().replaceChildren();
    document.querySelector(".record[aria-current] h2 a")?.focus();
    mark(null);
  };
  document.addEventListener("click", (event) => { if (event.target.closest("[data-close-pane]")) close(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.target.closest("input, textarea, select, dialog")) close();
  });
})();
