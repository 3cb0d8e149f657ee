// What scrolls can be reached by keyboard, with and without a mouse; each bar of buttons over code has its own name.
const reachable = (element) => element.setAttribute("tabindex", "0");
document.querySelectorAll("pre > code").forEach(reachable);
new MutationObserver((changes) => {
  for (const { addedNodes, target } of changes)
    for (const { classList } of addedNodes)
      if (classList?.contains("md-code__nav")) {
        target.querySelector("nav").setAttribute("aria-label", `Buttons of ${target.id}`);
        target.querySelectorAll("code").forEach(reachable);
      } else if (classList?.contains("md-typeset__scrollwrap")) target.querySelectorAll(".md-typeset__scrollwrap").forEach(reachable);
}).observe(document.body, { childList: true, subtree: true });
