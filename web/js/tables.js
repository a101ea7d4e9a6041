// SPDX-License-Identifier: Apache-2.0
// Bucket biases that published models have learned: T5's and MPNet's, by distance, as the library's rule reads them.

import { element, field, select, number } from "./dom.js";
import { Palette, surface, drawCurves } from "./draw.js";

/** @typedef {{title: string, bidirectional: number, max_distance: number, source: string, rows: number[][]}} BucketTable */

const TABLE_SLOT = 3; // of the module: a call of T5 whose rule tells the bucket of each distance
const FARTHEST = 48;

export class BucketTables {
    /** @param {import("./module.js").Locus} locus @param {HTMLElement} place @param {BucketTable[]} tables */
    constructor(locus, place, tables) {
        this.locus = locus;
        this.tables = tables;
        this.table = 0;
        this.head = 0;
        /** @type {number[]} */
        this.buckets = [];
        this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { id: "figure-tables", role: "img" }));
        this.caption = element("figcaption");
        this.says = element("p", { className: "says" });
        const models = select(tables.map((table, i) => [String(i), table.title]), "0");
        models.addEventListener("change", () => this.set({ table: Number(models.value), head: 0 }));
        this.heads = select([], "0");
        this.heads.addEventListener("change", () => this.set({ head: Number(this.heads.value) }));
        this.dark = matchMedia("(prefers-color-scheme: dark)");
        this.dark.addEventListener("change", () => this.draw());
        addEventListener("resize", () => this.draw());
        addEventListener("beforeprint", () => this.draw(false));
        addEventListener("afterprint", () => this.draw());
        place.replaceChildren(element("div", { className: "fields" }, field("Model", models), field("Head", this.heads)),
            element("figure", {}, this.caption, this.canvas), this.says);
        this.set({});
    }

    set(/** @type {{table?: number, head?: number}} */ change) {
        Object.assign(this, change);
        this.heads.replaceChildren(...this.tables[this.table].rows[0].map((_, h) =>
            element("option", { value: String(h), selected: h === this.head }, "head " + h)));
        this.draw();
    }

    /** What a head adds to the score at each distance; NaN where no key is. */
    curve(/** @type {number} */ head) {
        const { rows } = this.tables[this.table];
        return Float64Array.from(this.buckets, bucket => (bucket < 0 ? NaN : rows[bucket][head]));
    }

    /** The bucket of every distance m − n from −FARTHEST to FARTHEST, by the library. */
    readRule() {
        const table = this.tables[this.table];
        this.locus.call(TABLE_SLOT, {
            scheme: "t5", options: [["buckets", String(table.rows.length)], ["max_distance", String(table.max_distance)],
                ["bidirectional", String(table.bidirectional)]],
            weights: "", tokens: ["a", "b"], causal: table.bidirectional === 0, windowLeft: -1, windowRight: -1, scale: null, seed: 1,
        });
        const found = this.locus.rows(TABLE_SLOT, -FARTHEST, 2 * FARTHEST + 1).bias;
        this.buckets = Array.from(found, (bucket, i) => (table.bidirectional === 0 && i < FARTHEST ? -1 : bucket));
    }

    draw(dark = this.dark.matches) {
        const table = this.tables[this.table], palette = new Palette(this.locus, dark);
        this.readRule();
        const heads = table.rows[0].map((_, h) => h).filter(h => h !== this.head);
        const curves = [...heads, this.head].map(h => ({ values: this.curve(h), series: h === this.head ? 1 : 0, steps: true, faint: h !== this.head }));
        const chosen = this.curve(this.head);
        const best = chosen.reduce((top, value, i) => (value > chosen[top] || Number.isNaN(chosen[top]) ? i : top), 0);
        this.caption.textContent = `${table.title} (${table.source}): what head ${this.head} adds to the score at each distance m − n; the other heads are thin`;
        this.says.textContent = `Head ${this.head} adds most for ${this.where(best - FARTHEST)} (${number(chosen[best], 2)}); ` +
            `at the same place it adds ${number(chosen[FARTHEST], 2)}, ${FARTHEST} tokens back ${number(chosen[2 * FARTHEST], 2)}.`;
        this.canvas.setAttribute("aria-label", this.caption.textContent + ". " + this.says.textContent);
        drawCurves(surface(this.canvas, 260, palette), { first: -FARTHEST, curves, mark: 0, label: "distance m − n: positive, the key stands before the query" });
    }

    where(/** @type {number} */ distance) {
        if (distance === 0) return "the token itself";
        const count = Math.abs(distance), tokens = count === 1 ? "the token" : `tokens ${count}`;
        return count === 1 ? `${tokens} right ${distance > 0 ? "before" : "after"} it` : `${tokens} places ${distance > 0 ? "before" : "after"} it`;
    }
}
