// SPDX-License-Identifier: Apache-2.0
// The live figure of a lesson: one figure, a few controls, one question.

import { element, field, select, number } from "./dom.js";
import { Refused, TERM } from "./module.js";
import { surface, drawMap, drawBars, drawCurves, drawClocks, mapLayout } from "./draw.js";
import { optionControls, controlText } from "./options.js";
import { seen, weightRange } from "./explore.js";
import { formulaText, termText } from "./switch_numbers.js";
import { LETTERS, SENTENCE, charactersOf, tokensOf } from "./state.js";

const SLOT = 2; // of the module; lessons take turns in it
const MOVES = /** @type {Record<string, [number, number]>} */ ({
    ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
});

export class Live {
    /**
     * @param {import("./module.js").Locus} locus @param {import("./explore.js").Explore} explore
     * @param {import("./lessons.js").Lesson} lesson @param {HTMLElement} place
     */
    constructor(locus, explore, lesson, place) {
        this.locus = locus;
        this.explore = explore;
        this.lesson = lesson;
        this.tokens = lesson.trained ? charactersOf(LETTERS, locus.trained.characters) : tokensOf(SENTENCE);
        const last = this.tokens.length - 1;
        this.query = Math.min(7, last);
        this.key = Math.min(1, last);
        this.head = 0;
        this.off = 0;
        this.moved = false;
        /** @type {Map<string, string>} */
        this.options = new Map(Object.entries(lesson.options ?? {}));
        /** @type {[number, number][]} */
        this.seen = [[this.query, this.key]];
        this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { tabIndex: 0, role: "application" }));
        this.controls = element("div", { className: "fields" });
        this.says = element("p", { className: "says" });
        this.answer = element("p", { className: "answer", hidden: true, role: "status" });
        this.reveal = element("button", { type: "button" }, "Show the answer");
        this.reveal.addEventListener("click", () => this.tell());
        place.append(element("p", { className: "question" }, lesson.question), this.controls,
            element("figure", {}, this.canvas), this.says, this.reveal, this.answer);
        this.listen();
        this.addControls();
        this.visible = false;
        // Figures are drawn when the reader comes near them.
        new IntersectionObserver(entries => {
            this.visible = entries.some(entry => entry.isIntersecting);
            if (this.visible) this.draw();
        }, { rootMargin: "200px" }).observe(place);
        addEventListener("resize", () => this.visible && this.draw());
        addEventListener("beforeprint", () => this.draw());
        explore.dark.addEventListener("change", () => this.visible && this.draw());
    }

    listen() {
        this.canvas.addEventListener("keydown", event => {
            const move = MOVES[event.key];
            if (move === undefined) return;
            event.preventDefault();
            this.choose(this.query + move[0], this.key + move[1]);
        });
        this.canvas.addEventListener("pointerdown", event => this.tap(event));
        this.canvas.addEventListener("pointermove", event => { if (event.buttons !== 0) this.tap(event); });
    }

    addControls() {
        const scheme = this.locus.schemes.find(s => s.name === this.lesson.scheme);
        const wanted = this.lesson.controls;
        if (scheme === undefined) return;
        this.compute();
        const values = this.locus.calls[SLOT].options;
        this.controls.append(...optionControls({ ...scheme, options: scheme.options.filter(o => wanted.includes(o.name)) },
            this.options, values, () => this.draw()));
        if (wanted.includes("head")) {
            const head = select([0, 1, 2, 3].map(h => [String(h), "head " + h]), "0");
            head.addEventListener("change", () => {
                this.head = Number(head.value);
                this.draw();
            });
            this.controls.append(field("Head", head));
        }
        if (wanted.includes("terms")) this.addTerms();
        if (wanted.includes("words")) this.addWords();
    }

    addTerms() {
        this.locus.calls[SLOT].terms.forEach((term, t) => {
            const input = element("input", { type: "checkbox", checked: true });
            input.addEventListener("change", () => {
                this.off ^= 1 << t;
                this.draw();
            });
            const swatch = element("span", { className: "swatch" });
            swatch.dataset.ink = String(term.ink);
            this.controls.append(element("label", { className: "term" }, input, swatch,
                element("span", {}, termText(term.name) + " ", element("small", {}, formulaText(term.formula)))));
        });
    }

    addWords() {
        const move = (/** @type {string} */ text, /** @type {number} */ step) => {
            const button = element("button", { type: "button" }, text);
            button.addEventListener("click", () => this.swap(step));
            return button;
        };
        this.controls.append(move("← move the query word", -1), move("move the query word →", 1));
    }

    /** The query word changes places with its neighbour. */
    swap(/** @type {number} */ step) {
        const to = this.query + step;
        if (to < 0 || to >= this.tokens.length) return;
        [this.tokens[this.query], this.tokens[to]] = [this.tokens[to], this.tokens[this.query]];
        this.moved = true;
        this.choose(to, this.key);
    }

    tap(/** @type {PointerEvent} */ event) {
        const canvas = this.canvas, box = canvas.getBoundingClientRect();
        const x = event.clientX - box.left, y = event.clientY - box.top;
        if (["weight", "rule", "distance", "similarity"].includes(this.lesson.figure)) {
            const { left, top, cell } = mapLayout(canvas.clientWidth, this.tokens);
            this.choose(Math.floor((y - top) / cell), Math.floor((x - left) / cell));
        } else this.choose(this.query, Math.floor((x - 42) / (canvas.clientWidth - 46) * this.tokens.length));
    }

    choose(/** @type {number} */ query, /** @type {number} */ key) {
        const inside = (/** @type {number} */ i) => Math.min(this.tokens.length - 1, Math.max(0, i));
        this.query = inside(query);
        this.key = inside(key);
        const [query0, key0] = this.seen[this.seen.length - 1];
        if (query0 !== this.query || key0 !== this.key) this.seen.push([this.query, this.key]);
        this.draw();
    }

    /** The row of `bias` for a distance. */
    biasRow(/** @type {number} */ delta) {
        return this.locus.rows(SLOT, delta, 1).bias[0];
    }

    compute() {
        this.locus.call(SLOT, {
            scheme: this.lesson.trained ? this.locus.trained.attention.get(this.lesson.scheme) ?? this.lesson.scheme : this.lesson.scheme,
            options: this.lesson.trained ? this.locus.trained.options.get(this.lesson.scheme) ?? [] : [...this.options], tokens: this.tokens,
            causal: this.lesson.causal === true || this.lesson.trained === true, windowLeft: -1, windowRight: -1, scale: null, seed: 2017,
            weights: this.lesson.trained ? this.lesson.scheme : "",
        });
    }

    draw() {
        try {
            this.compute();
            this.figure();
        } catch (problem) {
            if (!(problem instanceof Refused)) throw problem;
            this.says.textContent = problem.message;
            return;
        }
        if (this.answer.hidden && this.lesson.solved(this)) this.tell();
    }

    /** To whoever found it, or asks. */
    tell() {
        this.answer.textContent = this.lesson.answer;
        this.answer.hidden = false;
        this.reveal.hidden = true;
    }

    figure() {
        const explained = this.locus.explain(SLOT, this.head, this.off), T = this.tokens.length;
        const at = this.query * T + this.key, palette = this.explore.palette;
        const canvas = this.canvas;
        const where = `query ${this.tokens[this.query]}, key ${this.tokens[this.key]}, m − n = ${controlText(this.query - this.key)}`;
        this.controls.querySelectorAll(".swatch").forEach(swatch => {
            /** @type {HTMLElement} */ (swatch).style.background = palette.term(Number(/** @type {HTMLElement} */ (swatch).dataset.ink));
        });
        const map = (/** @type {Float64Array} */ values, /** @type {number} */ digits, /** @type {string} */ noun, more = {}) => {
            const layout = mapLayout(canvas.clientWidth || 300, this.tokens);
            drawMap(surface(canvas, layout.height, palette), layout, {
                values, count: T, tokens: this.tokens, query: this.query, key: this.key,
                text: value => number(value, digits), ...more,
            });
            this.say(`${where}: ${noun} ${controlText(values[at])}`);
        };
        const weight = seen(explained, explained.weight);
        switch (this.lesson.figure) {
            case "weight": return map(weight, 2, "weight", { range: weightRange(weight) });
            case "distance": return map(this.distanceMap(), 0, `clip(${controlText(this.query - this.key)}) =`, { whole: true });
            case "rule": return map(seen(explained, this.ruleMap()), 0, "bucket", { whole: true });
            case "similarity": return map(this.locus.similarity(T, this.options.get("table") ?? "paper"), 1, "p_m · p_n =");
            case "curve": return this.curve(explained, where);
            case "clocks": return this.clocks(where, explained.score[at]);
            default: return this.bars(explained, where);
        }
    }

    /** clip(m − n): the library tells the row, which the table counts from its left end. */
    distanceMap() {
        const left = Number(this.options.get("clip_left") ?? 0), T = this.tokens.length, rows = this.locus.rows(SLOT, 1 - T, 2 * T - 1).table;
        return Float64Array.from({ length: T * T }, (_, i) => left - rows[Math.floor(i / T) - i % T + T - 1]);
    }

    ruleMap() {
        const T = this.tokens.length, rows = this.locus.rows(SLOT, 1 - T, 2 * T - 1);
        const list = rows.table.some(r => r >= 0) ? rows.table : rows.bias;
        return Float64Array.from({ length: T * T }, (_, i) => list[Math.floor(i / T) - i % T + T - 1]);
    }

    /** @param {import("./module.js").Explained} explained @param {string} where */
    bars(explained, where) {
        const T = this.tokens.length, row = (/** @type {Float64Array} */ values) => values.subarray(this.query * T, (this.query + 1) * T);
        const call = this.locus.calls[SLOT], palette = this.explore.palette;
        drawBars(surface(this.canvas, 220, palette), {
            terms: explained.terms.map((values, t) => ({ values: row(values).map((v, n) => (row(explained.weight)[n] === 0 && v !== v ? 0 : v)), ink: call.terms[t].ink })).filter((_, t) => (this.off >> t & 1) === 0),
            sums: row(explained.score), tokens: this.tokens, key: this.key,
        });
        const parts = call.terms.map((term, t) => `${termText(term.name)} ${number(explained.terms[t][this.query * T + this.key])}`);
        this.say(explained.visible[this.query * T + this.key] ? `${where}: ${parts.join(", ")}` : `${where}: hidden`);
    }

    /** @param {import("./module.js").Explained} explained @param {string} where */
    curve(explained, where) {
        const T = this.tokens.length, bias = this.locus.calls[SLOT].terms.findIndex(term => term.place === TERM.bias);
        const values = Float64Array.from({ length: T }, (_, d) => explained.terms[bias][(T - 1) * T + T - 1 - d]);
        drawCurves(surface(this.canvas, 200, this.explore.palette), {
            first: 0, curves: [{ values, ink: this.locus.calls[SLOT].terms[bias].ink, steps: true }], mark: Math.max(0, this.query - this.key), label: "distance m − n",
        });
        this.say(`${where}: bias ${controlText(values[Math.max(0, this.query - this.key)])}`);
    }

    clocks(/** @type {string} */ where, /** @type {number} */ score) {
        const turns = this.locus.turns(SLOT);
        drawClocks(surface(this.canvas, 136, this.explore.palette), {
            frequency: Array.from({ length: turns.length / 2 }, (_, t) => turns[2 * t]).slice(0, 8), query: this.query, key: this.key,
        });
        this.say(`${where}: score ${number(score)}`);
    }

    say(/** @type {string} */ text) {
        this.says.textContent = text;
        this.canvas.setAttribute("aria-label", text + ". Arrow keys choose another pair.");
    }
}
