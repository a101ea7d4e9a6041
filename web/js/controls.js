// SPDX-License-Identifier: Apache-2.0
// The controls and figures of Explore, before anybody listens to them.

import { element, field, select } from "./dom.js";
import { LONGEST } from "./state.js";

const input = (/** @type {Record<string, any>} */ attributes) =>
    /** @type {HTMLInputElement} */ (element("input", attributes));

/** @param {import("./module.js").Scheme[]} schemes */
export function makeControls(schemes) {
    const names = /** @type {[string, string][]} */ (schemes.map(s => [s.name, s.title]));
    const ui = {
        sentence: input({ type: "text", maxLength: 4096, spellcheck: false }),
        scheme: select(names, ""),
        second: select([["", "nothing"], ...names], ""),
        head: select([0, 1, 2, 3].map(h => [String(h), "head " + h]), "0"),
        causal: input({ type: "checkbox" }),
        left: input({ type: "number", min: "-1", max: String(LONGEST) }),
        right: input({ type: "number", min: "-1", max: String(LONGEST) }),
        scale: input({ type: "number", step: "any" }),
        seed: input({ type: "number", min: "0", max: "1000000" }),
        weights: select([["0", "made up"], ["1", "trained on novels"]], "0"),
        options: element("div", { className: "fields", id: "scheme-options" }),
        secondOptions: element("div", { className: "fields", id: "second-options" }),
        complaint: element("p", { className: "complaint", role: "alert" }),
        words: element("div", { className: "words", role: "radiogroup", "aria-label": "Query token" }),
        terms: element("div", { className: "terms", role: "group", "aria-label": "Terms of the score" }),
        equation: element("p", { className: "equation", id: "equation" }),
        live: element("p", { className: "sr", "aria-live": "polite" }),
        figures: element("div", { className: "figures" }),
    };
    const common = element("div", { className: "fields" }, field("Scheme", ui.scheme), field("Beside it", ui.second),
        field("Head", ui.head), field("Causal", ui.causal), field("Window left", ui.left, "-1: no limit"),
        field("Window right", ui.right, "-1: no limit"), field("Scale", ui.scale, "empty: the scheme's own"),
        field("Seed", ui.seed, "of the made-up contents"), field("Numbers", ui.weights));
    const all = element("div", {}, field("Sentence", ui.sentence), common, ui.options, ui.secondOptions, ui.complaint,
        ui.words, ui.terms, ui.equation, ui.live, ui.figures);
    return { ...ui, all };
}

/** One figure: its words above, its canvas. `cells`: a map whose cells can be chosen. */
function makeFigure(/** @type {HTMLElement} */ place, /** @type {string} */ id, /** @type {boolean} */ cells) {
    const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { id: "figure-" + id, tabIndex: cells ? 0 : -1, role: "img" }));
    const caption = element("figcaption");
    const box = element("figure", {}, caption, canvas);
    place.append(box);
    return { box, canvas, caption, cells };
}

/** @param {HTMLElement} place */
export function makeFigures(place) {
    return {
        rule: makeFigure(place, "rule", true),
        curve: makeFigure(place, "curve", false),
        bars: makeFigure(place, "bars", false),
        score: makeFigure(place, "score", true),
        weight: makeFigure(place, "weight", true),
        otherBars: makeFigure(place, "other-bars", false),
        otherWeight: makeFigure(place, "other-weight", true),
        difference: makeFigure(place, "difference", true),
    };
}
