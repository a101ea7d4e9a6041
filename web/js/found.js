// SPDX-License-Identifier: Apache-2.0
// What training found: how well the models of each scheme copy, and read text, at their own length and beyond it.

import { element, number } from "./dom.js";
import { Palette, surface, drawCurves } from "./draw.js";

/** @typedef {{name: string, title: string, lengths: number[], unit: string, values: Record<string, (number | null)[]>,
 *   about: string, seeds?: Record<string, number>, of?: number}} Chart */
/** @typedef {{charts: Chart[]}} Found */

const FIRST_SHOWN = ["sinusoidal", "t5", "alibi", "kerple", "rope", "transformer_xl"];

export class Findings {
    /** @param {import("./module.js").Locus} locus @param {HTMLElement} place @param {Found} found */
    constructor(locus, place, found) {
        this.locus = locus;
        this.charts = found.charts;
        this.schemes = Object.keys(found.charts[0].values);
        this.shown = new Set(FIRST_SHOWN);
        this.canvases = this.charts.map(chart => /** @type {HTMLCanvasElement} */ (element("canvas", { id: "figure-" + chart.name, role: "img" })));
        this.choices = element("div", { className: "terms", role: "group", "aria-label": "Schemes in the charts" },
            ...this.schemes.map((scheme, i) => this.choice(scheme, i)));
        this.dark = matchMedia("(prefers-color-scheme: dark)");
        this.dark.addEventListener("change", () => this.draw());
        addEventListener("resize", () => this.draw());
        addEventListener("beforeprint", () => this.draw(false));
        addEventListener("afterprint", () => this.draw());
        place.replaceChildren(this.choices, this.buttons(), element("div", { className: "figures" },
            ...this.charts.map((chart, i) => element("figure", {}, element("figcaption", {}, chart.title + ". " + chart.about), this.canvases[i]))),
            element("details", {}, element("summary", {}, "The numbers"), ...this.charts.map(chart => this.table(chart))));
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
        const swatch = element("span", { className: i < 8 ? "swatch" : "swatch dashed", "data-series": String(i) });
        return element("label", {}, input, swatch, scheme);
    }

    /** All of them, or none: fourteen boxes are many to tick. */
    buttons() {
        const button = (/** @type {string} */ text, /** @type {string[]} */ schemes) => {
            const made = element("button", { type: "button" }, text);
            made.addEventListener("click", () => {
                this.shown = new Set(schemes);
                this.choices.querySelectorAll("input").forEach((input, i) => { input.checked = this.shown.has(this.schemes[i]); });
                this.draw();
            });
            return made;
        };
        return element("div", { className: "take" }, button("all schemes", this.schemes), button("none of them", []));
    }

    text(/** @type {number | null} */ value, /** @type {Chart} */ chart) {
        return value === null ? "undefined" : number(value, chart.name === "copy" ? 1 : 3);
    }

    /** The numbers behind a chart; of copying also how many seeds have learned it. */
    table(/** @type {Chart} */ chart) {
        const cells = (/** @type {string} */ tag, /** @type {string[]} */ texts) =>
            element("tr", {}, ...texts.map(text => element(tag, {}, text)));
        const learned = (/** @type {string} */ text) => (chart.seeds === undefined ? [] : [text]);
        return element("table", { id: "table-" + chart.name }, element("caption", {}, `${chart.title}, by ${chart.unit}`),
            cells("th", ["scheme", ...chart.lengths.map(String), ...learned("seeds that learned it")]),
            ...this.schemes.map(scheme => cells("td", [scheme, ...chart.values[scheme].map(value => this.text(value, chart)),
                ...learned(`${chart.seeds?.[scheme]} of ${chart.of}`)])));
    }

    draw(dark = this.dark.matches) {
        const palette = new Palette(this.locus, dark);
        this.choices.querySelectorAll(".swatch").forEach((swatch, i) => {
            /** @type {HTMLElement} */ (swatch).style.borderColor = palette.series[i % 8];
            /** @type {HTMLElement} */ (swatch).style.background = i < 8 ? palette.series[i % 8] : "none";
        });
        this.charts.forEach((chart, i) => this.drawChart(chart, this.canvases[i], palette));
    }

    drawChart(/** @type {Chart} */ chart, /** @type {HTMLCanvasElement} */ canvas, /** @type {Palette} */ palette) {
        const curves = this.schemes.map((scheme, series) => ({ scheme, series, steps: false, dashed: series >= 8 }))
            .filter(curve => this.shown.has(curve.scheme))
            .map(curve => ({ ...curve, values: chart.values[curve.scheme].map(value => value ?? NaN) }));
        const said = curves.map(curve => `${curve.scheme} ${chart.values[curve.scheme].map(value => this.text(value, chart)).join(", ")}`);
        canvas.setAttribute("aria-label", chart.title + ": " + (said.join("; ") || "no scheme is chosen"));
        const s = surface(canvas, 300, palette);
        if (curves.length > 0)
            drawCurves(s, { first: 0, curves, mark: chart.lengths[0], label: chart.unit + "; the line marks the trained length", at: chart.lengths });
    }
}
