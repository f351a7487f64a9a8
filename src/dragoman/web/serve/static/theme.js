// Dark or light as it was chosen; a classic script in the head, so that a dark page never flashes white.
"use strict";
(() => {
  const KEY = "dragoman-theme";
  const root = document.documentElement;
  let chosen = null;
  try { chosen = localStorage.getItem(KEY); } catch { /* a browser may forbid storage */ }
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  function toggle() {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* then it lasts as long as the page */ }
  }
  addEventListener("DOMContentLoaded", () => document.getElementById("theme").addEventListener("click", toggle));
})();
