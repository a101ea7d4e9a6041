// SPDX-License-Identifier: Apache-2.0
// What the reader takes along: the figure, its numbers, the case file, lines that repeat the view.

import { element, download } from "./dom.js";
import { shellLine, pythonLines, cLines } from "./repeat.js";

function button(/** @type {string} */ text, /** @type {() => void} */ does) {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", does);
    return made;
}

/** @param {import("./explore.js").Explore} explore */
export function takeAlong(explore) {
    const { locus } = explore;
    const lines = /** @type {HTMLTextAreaElement} */ (element("textarea", {
        className: "copied", readOnly: true, rows: 4, hidden: true, "aria-label": "Lines to copy",
    }));
    const show = (/** @type {string} */ text) => {
        lines.hidden = false;
        lines.value = text;
        lines.select();
        navigator.clipboard?.writeText(text).catch(() => { }); // the text is selected all the same
    };
    return element("div", { className: "take", role: "group", "aria-label": "Take along" },
        button("SVG", () => download("view.svg", locus.figure(0, 0), "image/svg+xml")),
        button("CSV", () => download("view.csv", locus.figure(0, 1), "text/csv")),
        button("Case file", () => download("view.safetensors", locus.caseFile(0), "application/octet-stream")),
        button("Shell", () => show(shellLine(explore.state, explore.tokens))),
        button("Python", () => show(pythonLines(explore.state))),
        button("C", () => show(cLines(explore.state))), lines);
}
