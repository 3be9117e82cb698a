// Before anything is drawn: the theme that was chosen here, or else in Airflow, or else the system's.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("tidecast-theme") ?? ["dark", "light"].find((theme) => theme === localStorage.getItem("theme"));
    } catch {
      return null; // storage may be forbidden in a frame
    }
  };
  const dress = (theme) => {
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new CustomEvent("theme"));
  };
  dress(chosen() ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => chosen() ?? dress(dark.matches ? "dark" : "light"));
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("tidecast-theme", theme);
      } catch {
        // it holds for this page then
      }
      dress(theme);
    });
  });
})();
