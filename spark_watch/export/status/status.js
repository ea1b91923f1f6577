"use strict";
(() => {
  const lost = document.getElementById("lost");
  let answered = Date.now();
  async function renew() {
    if (!document.hidden && getSelection().isCollapsed) {
      try {
        const answer = await fetch(location.pathname, {
          headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(4000),
        });
        if (!answer.ok) throw new Error(answer.status);
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        const kept = new Map([...document.querySelectorAll("details")].map((one) => [one.id, one.open]));
        const focus = document.activeElement.closest("details")?.id;
        for (const one of next.querySelectorAll("details")) one.open = kept.get(one.id) ?? one.open;
        document.querySelector("main").replaceWith(next.querySelector("main"));
        document.title = next.title;
        if (focus) document.querySelector(`#${focus} > summary`)?.focus({ preventScroll: true });
        answered = Date.now();
      } catch {
        // said below: how long ago the last answer came
      }
      const silent = Math.round((Date.now() - answered) / 1000);
      lost.hidden = silent < 10;
      lost.textContent = `No answer for ${silent} s: what stands below is old.`;
    }
    setTimeout(renew, 2000);
  }
  setTimeout(renew, 2000);
})();
