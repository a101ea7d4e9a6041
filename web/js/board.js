// SPDX-License-Identifier: Apache-2.0
// The board: choose a scheme, and see what it makes of the four terms of the product, and where it enters on the way.

import { element } from "./dom.js";
import { PRODUCTS, TERM_NAMES, termClass, productPicture, processPicture } from "./product.js";

const PAUSE = 1400; // milliseconds between two replacements
export const boardText = "it is a truth universally";

/** @typedef {import("./module.js").Locus} Locus */

export class Board {
    /** @param {HTMLElement} place @param {string[][]} inks of the terms, on light and on dark paper */
    constructor(place, inks) {
        this.scheme = "sinusoidal";
        /** @type {Record<string, Record<string, number>>} */
        this.shares = {};
        this.step = /** @type {number | undefined} */ (undefined);
        this.asked = 0;
        const rules = (/** @type {number} */ theme) => TERM_NAMES.map((term, t) => `.board .${termClass(term)}{fill:${inks[theme][t]}}`).join("");
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(rules(0) + `@media (prefers-color-scheme:dark){${rules(1)}}`);
        document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
        this.buttons = Object.entries(PRODUCTS).map(([name, product]) => {
            const button = element("button", { type: "button" }, product.title);
            button.dataset.scheme = name;
            button.addEventListener("click", () => this.choose(name));
            return button;
        });
        this.process = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        this.square = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        for (const svg of [this.process, this.square]) svg.setAttribute("role", "img");
        this.note = element("p", { className: "note", "aria-live": "polite" });
        this.source = element("p", { className: "source" });
        this.steps = element("div", { className: "take", role: "group", "aria-label": "Replacements, one after the other" });
        this.root = element("div", { className: "board" }, element("div", { className: "take", role: "group", "aria-label": "Scheme" }, ...this.buttons),
            this.process, element("div", { className: "product" }, this.square, element("div", {}, this.note, this.steps, this.source)));
        place.replaceChildren(this.root);
        new ResizeObserver(() => this.draw()).observe(this.root);
        addEventListener("beforeprint", () => this.draw());
        this.choose(this.scheme);
    }

    choose(/** @type {string} */ name) {
        this.scheme = name;
        const steps = PRODUCTS[name].steps;
        this.step = steps && steps.length - 1;
        this.steps.replaceChildren(...(steps ?? []).map((_, i) => {
            const button = element("button", { type: "button" }, i === 0 ? "before" : "replacement " + i);
            button.addEventListener("click", () => this.show(i));
            return button;
        }));
        clearTimeout(this.asked);
        if (steps && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.play(0);
        else this.draw();
    }

    /** One replacement after the other. */
    play(/** @type {number} */ step) {
        this.step = step;
        this.draw();
        if (step + 1 < (PRODUCTS[this.scheme].steps?.length ?? 0)) this.asked = setTimeout(() => this.play(step + 1), PAUSE);
    }

    show(/** @type {number} */ step) {
        clearTimeout(this.asked);
        this.step = step;
        this.draw();
    }

    /** How large the terms are: those of the trained layers, all heads. */
    measure(/** @type {Locus} */ locus, /** @type {number} */ slot, /** @type {string[]} */ tokens) {
        for (const name of Object.keys(PRODUCTS)) {
            if (!locus.trained.options.has(name) || locus.trained.attention.has(name)) continue;
            locus.call(slot, { scheme: name, options: locus.trained.options.get(name) ?? [], weights: name, tokens, causal: true, windowLeft: -1, windowRight: -1, scale: null, seed: 1 });
            this.shares[name] = sharesOf(locus, slot);
        }
        this.draw();
    }

    draw() {
        const width = Math.max(280, Math.floor(this.root.clientWidth || 640)), product = PRODUCTS[this.scheme];
        const whole = this.step === undefined || this.step + 1 === product.steps?.length, shares = whole ? this.shares[this.scheme] ?? null : null;
        for (const [svg, picture] of /** @type {[SVGElement, {width: number, height: number, markup: string}][]} */ ([
            [this.process, processPicture(this.scheme, width)], [this.square, productPicture(this.scheme, Math.min(width, width < 720 ? 420 : 600), shares, this.step)]])) {
            svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
            svg.setAttribute("width", String(picture.width));
            svg.setAttribute("height", String(picture.height));
            svg.innerHTML = picture.markup;
        }
        this.process.setAttribute("aria-label", "From words to the output: " + product.title);
        this.square.setAttribute("aria-label", `${product.title}: ${product.quarters.map(({ term, text }) => (term === null ? "without " : "") + text).concat(product.more.map(({ text }) => text)).join("; ")}`);
        this.buttons.forEach(button => button.setAttribute("aria-pressed", String(button.dataset.scheme === this.scheme)));
        [...this.steps.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === this.step)));
        this.note.replaceChildren(...product.note.split(/_(\w)/).map((text, i) => (i % 2 === 1 ? element("sub", {}, text) : text)));
        this.source.textContent = shares === null ? "" : `Areas: the share of each term in what the scores of a query vary by; first layer of the small model that learned with it, “${boardText}”.`;
    }
}

/** sum cov(term, score) / sum var(score) along the keys that a query sees, mean of the heads, as `locus explain` has it. */
export function sharesOf(/** @type {Locus} */ locus, /** @type {number} */ slot) {
    const { length: T, heads, terms } = locus.calls[slot], sums = terms.map(() => 0);
    for (let h = 0; h < heads; h++) {
        const explained = locus.explain(slot, h, 0), own = terms.map(() => 0);
        for (let m = 0; m < T; m++) {
            const seen = Array.from({ length: T }, (_, n) => m * T + n).filter(i => explained.visible[i]);
            const mean = (/** @type {Float64Array} */ values) => seen.reduce((sum, i) => sum + values[i], 0) / seen.length, centre = mean(explained.score);
            terms.forEach((_, t) => { for (const i of seen) own[t] += explained.terms[t][i] * (explained.score[i] - centre); });
        }
        const all = own.reduce((sum, value) => sum + value, 0);
        own.forEach((value, t) => { sums[t] += value / all / heads; });
    }
    return Object.fromEntries(terms.map((term, t) => [term.name, sums[t]]));
}
