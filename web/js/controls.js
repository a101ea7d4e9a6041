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
        left: input({ type: "number", min: "0", max: String(LONGEST), placeholder: "no limit" }),
        right: input({ type: "number", min: "0", max: String(LONGEST), placeholder: "no limit" }),
        scale: input({ type: "number", step: "any", placeholder: "its own" }),
        seed: input({ type: "number", min: "0", max: "1000000" }),
        weights: select([["1", "trained on novels"], ["0", "made up"]], "1"),
        options: element("div", { className: "fields", id: "scheme-options" }),
        secondOptions: element("div", { className: "fields", id: "second-options" }),
        complaint: element("p", { className: "complaint", role: "alert" }),
        words: element("div", { className: "words", role: "radiogroup", "aria-label": "Query token" }),
        terms: element("div", { className: "terms", role: "group", "aria-label": "Terms of the score" }),
        equation: element("p", { className: "equation", id: "equation" }),
        live: element("p", { className: "sr", "aria-live": "polite" }),
        pair: element("div"), // beside the weights: the terms of the chosen pair
        figures: element("div", { className: "figures" }),
    };
    const more = element("details", { className: "more" }, element("summary", {}, "More"),
        element("div", { className: "fields" }, field("Beside it", ui.second), field("Causal", ui.causal, "Keys after the query are hidden"),
            field("Window left", ui.left, "Keys farther before the query are hidden"), field("Window right", ui.right, "Keys farther after it are hidden"),
            field("Scale", ui.scale, "c in the formulas"), field("Seed", ui.seed, "Of made-up contents")));
    const chosen = element("div", { className: "fields pinned" }, field("Scheme", ui.scheme), field("Head", ui.head), field("Numbers", ui.weights),
        ui.options, ui.secondOptions, ui.complaint);
    const side = element("div", { className: "side" }, field("Sentence", ui.sentence), chosen, more);
    const all = element("div", { className: "explore" }, side, element("div", { className: "view" },
        ui.words, ui.figures));
    ui.pair.append(ui.terms, ui.equation, ui.live);
    return { ...ui, all };
}

/** One figure: its words above, its canvas. `cells`: a map whose cells can be chosen. */
function makeFigure(/** @type {HTMLElement} */ place, /** @type {string} */ id, /** @type {boolean} */ cells) {
    const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { id: "figure-" + id, tabIndex: cells ? 0 : -1, role: cells ? "application" : "img" }));
    const caption = element("figcaption");
    const box = element("figure", {}, caption, canvas);
    place.append(box);
    return { box, canvas, caption, cells };
}

/** @param {HTMLElement} place @param {HTMLElement} pair behind the first figure */
export function makeFigures(place, pair) {
    const weight = makeFigure(place, "weight", true);
    place.append(pair);
    return {
        weight,
        bars: makeFigure(pair, "bars", false),
        otherBars: makeFigure(place, "other-bars", false),
        otherWeight: makeFigure(place, "other-weight", true),
        difference: makeFigure(place, "difference", true),
        rule: makeFigure(place, "rule", true),
        curve: makeFigure(place, "curve", false),
        score: makeFigure(place, "score", true),
    };
}
