// Sets the colour scheme before the page is drawn: automatic, unless the user chose one.
(() => {
  try {
    const chosen = localStorage.getItem("hybrid-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* storage is closed: automatic */ }
})();
