// SPDX-License-Identifier: Apache-2.0
// What training found: bits per character of text models, read at their own length and beyond it.

import { element } from "./dom.js";
import { Palette, surface, drawCurves } from "./draw.js";

/** @typedef {{lengths: number[], bpc: Record<string, (number | null)[]>, about: string}} Found */

const FIRST_SHOWN = ["none", "sinusoidal", "t5", "alibi", "kerple", "rope", "transformer_xl"];

export class Findings {
    /** @param {import("./module.js").Locus} locus @param {HTMLElement} place @param {Found} found */
    constructor(locus, place, found) {
        this.locus = locus;
        this.found = found;
        this.schemes = Object.keys(found.bpc);
        this.shown = new Set(FIRST_SHOWN.filter(scheme => this.schemes.includes(scheme)));
        this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { id: "figure-found", role: "img" }));
        this.choices = element("div", { className: "terms", role: "group", "aria-label": "Schemes in the chart" },
            ...this.schemes.map((scheme, i) => this.choice(scheme, i)));
        this.dark = matchMedia("(prefers-color-scheme: dark)");
        this.dark.addEventListener("change", () => this.draw());
        addEventListener("resize", () => this.draw());
        place.replaceChildren(this.choices, element("figure", {}, element("figcaption", {},
            `Bits per character against the length of the window that is read (${found.lengths.join(", ")}); lower is better. ${found.about}`),
            this.canvas), this.table());
        this.draw();
    }

    /** @param {string} scheme @param {number} i its place in the list, which is its colour */
    choice(scheme, i) {
        const input = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", checked: this.shown.has(scheme) }));
        input.addEventListener("change", () => {
            if (input.checked) this.shown.add(scheme);
            else this.shown.delete(scheme);
            this.draw();
        });
        return element("label", {}, input, element("span", { className: "swatch", "data-series": String(i) }), scheme);
    }

    text(/** @type {number | null} */ value) {
        return value === null ? "undefined" : value.toFixed(3);
    }

    /** The numbers behind the chart. */
    table() {
        const cells = (/** @type {string} */ tag, /** @type {string[]} */ texts) =>
            element("tr", {}, ...texts.map(text => element(tag, {}, text)));
        return element("details", {}, element("summary", {}, "The numbers"), element("table", {},
            cells("th", ["scheme", ...this.found.lengths.map(String)]),
            ...this.schemes.map(scheme => cells("td", [scheme, ...this.found.bpc[scheme].map(value => this.text(value))]))));
    }

    draw() {
        const palette = new Palette(this.locus, this.dark.matches);
        this.choices.querySelectorAll(".swatch").forEach((swatch, i) => {
            /** @type {HTMLElement} */ (swatch).style.background = palette.series[i % 8];
        });
        const curves = this.schemes.map((scheme, series) => ({ scheme, series, steps: false }))
            .filter(curve => this.shown.has(curve.scheme))
            .map(curve => ({ ...curve, values: this.found.bpc[curve.scheme].map(value => value ?? NaN) }));
        const said = curves.map(curve => `${curve.scheme} ${curve.values.map(value => this.text(Number.isNaN(value) ? null : value)).join(", ")}`);
        this.canvas.setAttribute("aria-label", "bits per character: " + (said.join("; ") || "no scheme is chosen"));
        const s = surface(this.canvas, 300, palette);
        if (curves.length > 0) drawCurves(s, { first: 1, curves, mark: 1, label: "length: " + this.found.lengths.map((length, i) => `${i + 1} is ${length}`).join(", ") + "; 1 is that of training" });
    }
}
