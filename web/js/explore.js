// SPDX-License-Identifier: Apache-2.0
// Explore: a sentence, a scheme or two, its options; every figure follows at once.

import { element, number } from "./dom.js";
import { Refused, TERM } from "./module.js";
import { Palette, surface, drawMap, drawBars, drawCurves, drawClocks, mapLayout, limits } from "./draw.js";
import { plainState, startState, readHash, writeHash, isAnchor, tokensOf, charactersOf, wordsLeftOut, LONGEST } from "./state.js";
import { optionControls, controlText } from "./options.js";
import { makeControls, makeFigures } from "./controls.js";
import { takeAlong } from "./take.js";
import { formulaText, termText } from "./switch_numbers.js";

/** @typedef {import("./module.js").Locus} Locus */
/** @typedef {import("./module.js").Explained} Explained */
/** @typedef {import("./state.js").State} State */

/** NaN where a query does not see a key: one look for all that is hidden. */
export const seen = (/** @type {Explained} */ explained, /** @type {Float64Array} */ values) =>
    values.map((value, i) => (explained.visible[i] ? value : NaN));

/** Weights begin at 0, wherever they end. */
export const weightRange = (/** @type {Float64Array[]} */ ...maps) => ({ low: 0, high: Math.max(...maps.map(map => limits(map).high)), both: false });

export class Explore {
    /** @param {Locus} locus @param {HTMLElement} place */
    constructor(locus, place) {
        this.locus = locus;
        this.place = place;
        const { state, bad } = readHash(location.hash);
        /** @type {State} */
        this.state = state;
        this.problems = bad.map(key => `the address has a field “${key}” that cannot be read; it is left out`);
        /** @type {string[]} */
        this.tokens = [];
        this.dark = matchMedia("(prefers-color-scheme: dark)");
        this.palette = new Palette(locus, this.dark.matches);
        this.dark.addEventListener("change", () => this.paint(this.dark.matches));
        // Paper is light. What is asked for here has to be drawn before the event ends.
        addEventListener("beforeprint", () => {
            this.paint(false);
            this.refresh(true);
        });
        addEventListener("afterprint", () => this.paint(this.dark.matches));
        this.asked = 0;
        /** milliseconds from input to figure, for the test that measures */
        this.took = /** @type {number[]} */ ([]);
        this.ui = makeControls(locus.schemes);
        this.maps = makeFigures(this.ui.figures, this.ui.pair);
        this.speak = false;
        this.chapter = false;
        this.shown = "";
        place.append(this.ui.all, takeAlong(this));
        for (const box of Object.values(this.maps)) if (box.cells) this.follow(box.canvas);
        this.listen();
        this.showState();
        this.refresh(true);
        addEventListener("resize", () => this.ask());
        addEventListener("popstate", () => this.restore());
    }

    paint(/** @type {boolean} */ dark) {
        this.palette = new Palette(this.locus, dark);
        this.ask();
    }

    restore() {
        if (isAnchor(location.hash)) return; // the reader went to a heading: the view stays
        const { state, bad } = readHash(location.hash);
        this.state = state;
        this.problems = bad.map(key => `the address has a field “${key}” that cannot be read; it is left out`);
        this.showState();
        this.refresh(true);
    }

    // ---- controls ----

    listen() {
        this.ui.sentence.addEventListener("input", () => this.set({ sentence: this.ui.sentence.value }));
        this.ui.scheme.addEventListener("change", () => this.set({ scheme: this.ui.scheme.value, options: new Map(), off: 0 }, true));
        this.ui.second.addEventListener("change", () => this.set({ second: this.ui.second.value, secondOptions: new Map() }, true));
        this.ui.head.addEventListener("change", () => this.set({ head: Number(this.ui.head.value) }));
        this.ui.causal.addEventListener("change", () => this.set({ causal: this.ui.causal.checked }));
        this.ui.left.addEventListener("input", () => this.setNumber("windowLeft", this.ui.left));
        this.ui.right.addEventListener("input", () => this.setNumber("windowRight", this.ui.right));
        this.ui.seed.addEventListener("input", () => this.setNumber("seed", this.ui.seed));
        this.ui.weights.addEventListener("change", () => this.setWeights(this.ui.weights.value === "1"));
        this.ui.scale.addEventListener("input", () => this.set({ scale: this.ui.scale.value === "" ? null : Number(this.ui.scale.value) }));
    }

    /** @param {Partial<State>} change @param {boolean} [chapter] a step that the back button takes back */
    set(change, chapter = false) {
        Object.assign(this.state, change);
        this.problems = [];
        this.ask(chapter);
    }

    /** Trained layers saw what came before, so they start causal; their options are those of the training. The sentence that the
     * page begins with goes with its kind of tokens, the reader's own stays. */
    setWeights(/** @type {boolean} */ trained) {
        const from = trained ? plainState() : startState(), to = trained ? startState() : plainState();
        const sentence = this.state.sentence === from.sentence ? to.sentence : this.state.sentence;
        this.set({ trained, causal: trained, sentence, options: new Map(), secondOptions: new Map(), off: 0 }, true);
        this.showState();
    }

    setNumber(/** @type {"windowLeft" | "windowRight" | "seed"} */ name, /** @type {HTMLInputElement} */ input) {
        if (!input.validity.valid || input.value === "" && name === "seed") return;
        this.set({ [name]: input.value === "" ? -1 : Number(input.value) });
    }

    /** Every control shows the state. */
    showState() {
        const s = this.state;
        if (!this.locus.schemes.some(x => x.name === s.scheme)) {
            this.problems.push(`there is no scheme “${s.scheme}”`);
            s.scheme = startState().scheme;
        }
        if (s.second !== "" && !this.locus.schemes.some(x => x.name === s.second)) s.second = "";
        this.ui.sentence.value = s.sentence;
        this.ui.scheme.value = s.scheme;
        this.ui.second.value = s.second;
        this.ui.head.value = String(s.head);
        this.ui.causal.checked = s.causal;
        this.ui.left.value = s.windowLeft < 0 ? "" : String(s.windowLeft);
        this.ui.right.value = s.windowRight < 0 ? "" : String(s.windowRight);
        this.ui.scale.value = s.scale === null ? "" : String(s.scale);
        this.ui.seed.value = String(s.seed);
        this.ui.weights.value = s.trained ? "1" : "0";
        this.shown = ""; // options follow with the call
    }

    showOptions() {
        const make = (/** @type {number} */ slot, /** @type {string} */ name, /** @type {Map<string, string>} */ chosen) => {
            const scheme = this.locus.schemes.find(x => x.name === name), call = this.locus.calls[slot];
            if (scheme === undefined || call?.scheme !== name) return [];
            if (this.state.trained) return slot > 0 ? [] : [element("small", {}, "Options are those of the training; made-up numbers let them move.")];
            return optionControls(scheme, chosen, call.options, () => this.ask());
        };
        this.ui.options.replaceChildren(...make(0, this.state.scheme, this.state.options));
        this.ui.secondOptions.replaceChildren(...make(1, this.state.second, this.state.secondOptions));
        this.shown = this.choice();
    }

    /** What the options on the screen belong to. */
    choice() {
        return [this.state.scheme, this.state.second, this.state.trained].join();
    }

    // ---- figures ----

    /** Arrows, taps and drags on a map move the pair. */
    follow(/** @type {HTMLCanvasElement} */ canvas) {
        const moves = /** @type {Record<string, [number, number]>} */ ({
            ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
            Home: [0, -LONGEST], End: [0, LONGEST], PageUp: [-LONGEST, 0], PageDown: [LONGEST, 0],
        });
        canvas.addEventListener("keydown", event => {
            const move = moves[event.key];
            if (move === undefined) return;
            event.preventDefault();
            this.movePair(this.state.query + move[0], this.state.key + move[1]);
        });
        const at = (/** @type {PointerEvent} */ event) => {
            const box = canvas.getBoundingClientRect();
            const layout = this.layout(canvas);
            this.movePair(Math.floor((event.clientY - box.top - layout.top) / layout.cell),
                Math.floor((event.clientX - box.left - layout.left) / layout.cell));
        };
        canvas.addEventListener("pointerdown", event => {
            canvas.setPointerCapture(event.pointerId);
            at(event);
        });
        canvas.addEventListener("pointermove", event => {
            if (event.buttons !== 0 || event.pointerType === "mouse" && event.shiftKey) at(event);
        });
    }

    movePair(/** @type {number} */ query, /** @type {number} */ key) {
        const last = this.tokens.length - 1, inside = (/** @type {number} */ i) => Math.min(last, Math.max(0, i));
        this.set({ query: inside(query), key: inside(key) });
        this.speak = true;
    }

    layout(/** @type {HTMLCanvasElement} */ canvas) {
        return mapLayout(canvas.clientWidth || 300, this.tokens);
    }

    // ---- computing and showing ----

    /** Once per frame at most. */
    ask(chapter = false) {
        const now = performance.now();
        this.chapter = this.chapter || chapter;
        if (this.asked !== 0) return;
        this.asked = requestAnimationFrame(() => {
            this.asked = 0;
            this.refresh(false, this.chapter);
            this.chapter = false;
            this.took.push(performance.now() - now);
        });
    }

    /** @param {string} scheme @param {Map<string, string>} options */
    request(scheme, options) {
        const s = this.state;
        if (s.trained && !this.locus.trained.options.has(scheme))
            throw new Refused(`${scheme}: found no trained layer, expected one of ${[...this.locus.trained.options.keys()].join(", ")}`);
        return {
            scheme: s.trained ? this.locus.trained.attention.get(scheme) ?? scheme : scheme,
            options: s.trained ? this.locus.trained.options.get(scheme) ?? [] : [...options],
            weights: s.trained ? scheme : "", tokens: this.tokens, causal: s.causal,
            windowLeft: s.windowLeft, windowRight: s.windowRight, scale: s.scale, seed: s.seed,
        };
    }

    /** @param {boolean} keepAddress @param {boolean} [chapter] */
    refresh(keepAddress, chapter = false) {
        const s = this.state;
        this.tokens = s.trained ? charactersOf(s.sentence, this.locus.trained.characters) : tokensOf(s.sentence);
        const leftOut = s.trained ? 0 : wordsLeftOut(s.sentence);
        const notes = [...this.problems];
        if (leftOut > 0) notes.push(`${leftOut} words do not fit: ${LONGEST} are shown`);
        try {
            if (this.tokens.length === 0) throw new Refused("sentence: found no word, expected at least one");
            const last = this.tokens.length - 1;
            s.query = Math.min(s.query, last);
            s.key = Math.min(s.key, last);
            this.locus.call(0, this.request(s.scheme, s.options));
            if (s.second !== "") this.locus.call(1, this.request(s.second, s.secondOptions));
            if (this.shown !== this.choice()) this.showOptions();
            this.show();
        } catch (problem) {
            if (!(problem instanceof Refused)) throw problem;
            notes.push(problem.message);
        }
        this.ui.complaint.textContent = notes.join(". ");
        if (keepAddress) return;
        const address = writeHash(s);
        if (chapter) history.pushState(null, "", address);
        else history.replaceState(null, "", address);
    }

    show() {
        const s = this.state, call = this.locus.calls[0];
        const explained = this.locus.explain(0, s.head, s.off);
        this.showWords();
        this.showTerms(call.terms);
        this.showEquation(call, explained);
        this.showRule(call, explained);
        this.showCurve(call, explained);
        this.showBars("bars", 0, explained);
        this.showMap("score", "Scores before softmax: along a row only differences count", seen(explained, explained.score), { digits: 1 });
        this.showWeights(seen(explained, explained.weight));
    }

    /** The weights of one scheme or two, those of two on one scale. */
    showWeights(/** @type {Float64Array} */ weight) {
        const on = this.state.second !== "", title = (/** @type {string} */ name) => this.locus.schemes.find(x => x.name === name)?.title;
        for (const name of /** @type {const} */ (["otherBars", "otherWeight", "difference"]))
            this.maps[name].box.hidden = !on;
        if (!on) return this.showMap("weight", "Weights after softmax", weight, { range: weightRange(weight) });
        const other = this.locus.explain(1, this.state.head, 0), weights = seen(other, other.weight);
        const range = weightRange(weight, weights);
        this.showMap("weight", "Weights of " + title(this.state.scheme), weight, { range });
        this.showBars("otherBars", 1, other);
        this.showMap("otherWeight", "Weights of " + title(this.state.second), weights, { range });
        this.showMap("difference", `Difference of the weights: ${title(this.state.second)} minus ${title(this.state.scheme)}`,
            weights.map((w, i) => w - weight[i]));
    }

    showWords() {
        const words = this.ui.words;
        const same = words.children.length === this.tokens.length &&
            [...words.children].every((child, i) => child.textContent === this.tokens[i]);
        if (!same) words.replaceChildren(...this.tokens.map((token, i) => this.word(token, i)));
        [...words.children].forEach((child, i) => {
            child.setAttribute("aria-checked", String(i === this.state.query));
            /** @type {HTMLElement} */ (child).tabIndex = i === this.state.query ? 0 : -1;
            child.classList.toggle("key", i === this.state.key);
        });
    }

    word(/** @type {string} */ token, /** @type {number} */ i) {
        const button = element("button", { type: "button", role: "radio" }, token);
        button.addEventListener("click", () => this.movePair(i, this.state.key));
        button.addEventListener("keydown", event => {
            const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
            if (step === undefined) return;
            event.preventDefault();
            this.movePair(this.state.query + step, this.state.key);
            requestAnimationFrame(() => /** @type {HTMLElement} */ (this.ui.words.children[this.state.query])?.focus());
        });
        return button;
    }

    showTerms(/** @type {import("./module.js").Term[]} */ terms) {
        const box = this.ui.terms;
        const names = terms.map(term => term.name).join();
        if (box.dataset.names !== names) {
            box.dataset.names = names;
            box.replaceChildren(...terms.map((term, t) => {
                const input = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
                input.addEventListener("change", () => this.set({ off: this.state.off ^ 1 << t }));
                return element("label", {}, input, element("span", { className: "swatch" }), element("span", {}, termText(term.name) + " ", element("small", {}, formulaText(term.formula))));
            }));
        }
        [...box.querySelectorAll("input")].forEach((input, t) => { input.checked = (this.state.off >> t & 1) === 0; });
        box.querySelectorAll(".swatch").forEach((swatch, t) => {
            /** @type {HTMLElement} */ (swatch).style.background = this.palette.term(terms[t].ink);
        });
    }

    /** The chosen pair in numbers, as `locus explain` writes it. */
    showEquation(/** @type {import("./module.js").Call} */ call, /** @type {Explained} */ explained) {
        const s = this.state, at = s.query * call.length + s.key;
        const parts = call.terms.map((term, t) => [term.name, explained.terms[t][at], s.off >> t & 1])
            .filter(([, , off]) => off === 0).map(([name, value]) => `${number(Number(value))} ${termText(String(name))}`);
        const sum = explained.visible[at] ? `${parts.join(" + ") || "0"} = ${number(explained.score[at])}` : "hidden: −∞";
        const text = `query ${this.tokens[s.query]} (m = ${s.query}), key ${this.tokens[s.key]} (n = ${s.key}), ` +
            `m − n = ${controlText(s.query - s.key)}: ${sum.replaceAll("+ −", "− ")}; weight ${number(explained.weight[at])}`;
        this.ui.equation.textContent = text;
        this.ui.equation.dataset.terms = JSON.stringify(call.terms.map((_, t) => explained.terms[t][at]));
        this.ui.equation.dataset.weight = String(explained.weight[at]);
        if (this.speak) this.ui.live.textContent = text;
        this.speak = false;
    }

    /** Which row of a table, or which distance, each pair gets. */
    showRule(/** @type {import("./module.js").Call} */ call, /** @type {Explained} */ explained) {
        const T = call.length, rows = this.locus.rows(0, 1 - T, 2 * T - 1);
        const kind = rows.table.some(r => r >= 0) ? "table" : rows.bias.some(r => r >= 0) ? "bias" : "distance";
        const values = Float64Array.from({ length: T * T }, (_, i) => {
            const delta = Math.floor(i / T) - i % T;
            const row = kind === "table" ? rows.table[delta + T - 1] : kind === "bias" ? rows.bias[delta + T - 1] : delta;
            return kind !== "distance" && row < 0 ? NaN : row;
        });
        const titles = { table: "Row of the relative table that serves each pair", bias: "Bucket of each pair: its row of the bias table", distance: "Distance m − n of each pair" };
        this.showMap("rule", titles[kind], seen(explained, values), { digits: 0, whole: true });
    }

    showCurve(/** @type {import("./module.js").Call} */ call, /** @type {Explained} */ explained) {
        const box = this.maps.curve;
        const bias = call.terms.findIndex(term => term.place === TERM.bias);
        const turns = call.terms.some(term => term.place === TERM.rotation) ? this.locus.turns(0) : null;
        if (turns !== null) this.showClocks(box, turns);
        else if (bias >= 0) this.showByDistance(box, call, explained, [bias], "Bias of this head by distance m − n", false);
        else {
            const position = call.terms.map((_, t) => t).filter(t => call.terms[t].name !== "content" && (this.state.off >> t & 1) === 0);
            this.maps.curve.box.hidden = position.length === 0;
            if (position.length > 0)
                this.showByDistance(box, call, explained, position, `Position terms of query ${this.tokens[this.state.query]} by distance m − n`, true);
        }
    }

    showClocks(/** @type {any} */ box, /** @type {Float64Array} */ turns) {
        const frequency = Array.from({ length: turns.length / 2 }, (_, t) => turns[2 * t]).slice(0, 8);
        this.caption(box, `Turns of the query at ${this.state.query} and the key at ${this.state.key}, pair by pair; below: frequency`);
        drawClocks(surface(box.canvas, 136, this.palette), { frequency, query: this.state.query, key: this.state.key });
    }

    /** A curve over all distances, or only over those that one query meets. */
    showByDistance(/** @type {any} */ box, /** @type {import("./module.js").Call} */ call, /** @type {Explained} */ explained,
        /** @type {number[]} */ terms, /** @type {string} */ title, /** @type {boolean} */ ofQuery) {
        const T = call.length, curves = terms.map(t => {
            const values = new Float64Array(2 * T - 1).fill(NaN);
            for (let i = 0; i < T * T; i++)
                if (explained.visible[i] && (!ofQuery || Math.floor(i / T) === this.state.query)) values[Math.floor(i / T) - i % T + T - 1] = explained.terms[t][i];
            return { values, ink: call.terms[t].ink, steps: true };
        });
        box.box.hidden = false;
        this.caption(box, title);
        drawCurves(surface(box.canvas, 220, this.palette), {
            first: 1 - T, curves, mark: this.state.query - this.state.key, label: "distance m − n: positive, the key stands before the query",
        });
    }

    showBars(/** @type {"bars" | "otherBars"} */ name, /** @type {number} */ slot, /** @type {Explained} */ explained) {
        const box = this.maps[name], call = this.locus.calls[slot], T = call.length, m = this.state.query;
        const off = slot === 0 ? this.state.off : 0;
        const row = (/** @type {Float64Array} */ values) => values.subarray(m * T, (m + 1) * T);
        const terms = explained.terms.map((values, t) => ({ values: row(values).map((v, n) => (explained.visible[m * T + n] ? v : 0)), ink: call.terms[t].ink }))
            .filter((_, t) => (off >> t & 1) === 0);
        const chosen = slot === 0 ? this.state.scheme : this.state.second;
        const scheme = this.locus.schemes.find(x => x.name === chosen);
        this.caption(box, `${scheme?.title}: the score of “${this.tokens[m]}” against every key, term by term; the dot is the sum`);
        drawBars(surface(box.canvas, 240, this.palette), { terms, sums: row(explained.score), tokens: this.tokens, key: this.state.key });
    }

    /**
     * @param {"rule" | "score" | "weight" | "otherWeight" | "difference"} name @param {string} title @param {Float64Array} values
     * @param {{digits?: number, whole?: boolean, range?: {low: number, high: number, both: boolean}}} how
     */
    showMap(name, title, values, { digits = 2, whole, range } = {}) {
        const box = this.maps[name];
        this.caption(box, title);
        const layout = this.layout(box.canvas), T = this.tokens.length;
        const at = values[this.state.query * T + this.state.key];
        drawMap(surface(box.canvas, layout.height, this.palette), layout, {
            values, count: T, tokens: this.tokens, query: this.state.query, key: this.state.key, text: value => number(value, digits), range, whole,
        });
        box.canvas.setAttribute("aria-label", `${title}. ${T} queries down, ${T} keys across. ` +
            `Query ${this.tokens[this.state.query]}, key ${this.tokens[this.state.key]}: ${controlText(at)}. Arrow keys move the pair.`);
    }

    caption(/** @type {{caption: HTMLElement, canvas: HTMLCanvasElement}} */ box, /** @type {string} */ text) {
        box.caption.textContent = text;
        box.canvas.setAttribute("aria-label", text);
    }
}
