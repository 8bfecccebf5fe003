"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const narrow = window.matchMedia("(max-width: 700px)");
  const config = { responsive: true, displaylogo: false, displayModeBar: true,
    modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]] };
  const layoutOf = (spec) => structuredClone(narrow.matches ? spec.narrow : spec.layout);
  const drawings = () => [...document.querySelectorAll(".drawing")];
  const draw = (each) => {
    const spec = specs[each.dataset.figure];
    return Plotly.react(each, spec.data, layoutOf(spec), config);
  };
  const printed = (width) => drawings().forEach((each) =>
    Plotly.relayout(each, width ? { width } : { width: null, autosize: true }));
  const started = performance.now();
  Promise.all(drawings().map(draw)).then(() => {
    document.documentElement.dataset.drawnMs = Math.round(performance.now() - started);
  });
  narrow.addEventListener("change", () => drawings().forEach(draw));
  window.addEventListener("beforeprint", () => printed(690));
  window.addEventListener("afterprint", () => printed(0));
})();
