// SPDX-License-Identifier: Apache-2.0
// The position switch: a line of words, one big switch that takes position out of the score and puts it back, and a small
// one for each term. Where a head looks, and why, before and after.

import { element, select } from "./dom.js";
import { SwitchNumbers, switchSentence, headName, formulaText, termText, percent } from "./switch_numbers.js";
import { switchPicture, headPicture } from "./switch_picture.js";

/** @typedef {import("./switch_numbers.js").SwitchData} SwitchData */

const FADE = 300; // milliseconds
const STEPS = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -1e6, End: 1e6 });

let switches = 0;

/** Colours of the terms as rules: scripts may add style sheets where the policy forbids style attributes. */
function termRules(/** @type {string} */ id, /** @type {SwitchData} */ data) {
    const rules = (/** @type {number} */ theme) => data.terms.map((term, t) => `#${id} .t${t}{fill:${term.inks[theme]};background-color:${term.inks[theme]}}`).join("");
    return rules(0) + `@media (prefers-color-scheme:dark){${rules(1)}}`;
}

export class PositionSwitch {
    /** @param {HTMLElement} place @param {SwitchData} data @param {(query: number, head: number) => void} [chosen] */
    constructor(place, data, chosen = () => { }) {
        this.id = "switch-" + ++switches;
        this.chosen = chosen;
        this.numbers = new SwitchNumbers(data);
        this.head = this.query = 0;
        this.target = this.factors = this.numbers.factors(1);
        /** @type {number[]} */
        this.shown = [];
        this.sheet = new CSSStyleSheet();
        document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.sheet];
        this.still = matchMedia("(prefers-reduced-motion: reduce)");
        this.big = element("button", { type: "button", className: "big-switch", role: "switch" },
            element("span", { className: "off" }, "off"), element("span", { className: "knob" }), element("span", { className: "on" }, "on"));
        this.big.setAttribute("aria-label", "Position");
        this.terms = element("div", { className: "switch-terms", role: "group", "aria-label": "Terms of the score" });
        this.layers = element("div", { className: "switch-layers" });
        this.sentence = element("p", { className: "switch-sentence", "aria-live": "polite" });
        this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        this.heads = element("div", { className: "switch-heads", role: "radiogroup", "aria-label": "Heads of the layer" });
        this.root = element("div", { className: "switch", id: this.id },
            element("div", { className: "switch-bar" }, element("span", { className: "switch-word" }, "position"), this.big, this.terms, this.layers),
            this.sentence, this.svg, this.heads);
        place.replaceChildren(this.root);
        this.listen();
        this.show(this.numbers);
    }

    /**
     * Other numbers in the same place.
     * @param {SwitchNumbers} numbers @param {{head?: number, query?: number}} [at]
     */
    show(numbers, at = {}) {
        this.numbers = numbers;
        const start = numbers.start();
        this.head = at.head ?? start.head;
        this.query = at.query ?? start.query;
        this.target = this.factors = numbers.factors(1);
        this.sheet.replaceSync(termRules(this.id, numbers.data));
        this.makeTerms();
        this.makeLayers();
        this.makeHeads();
        this.draw();
    }

    listen() {
        this.svg.setAttribute("role", "listbox");
        this.svg.setAttribute("tabindex", "0");
        this.svg.setAttribute("aria-label", "The query: arrow keys choose another word");
        this.big.addEventListener("click", () => this.turn(this.isOn() ? 0 : 1));
        this.svg.addEventListener("keydown", event => {
            const step = STEPS[event.key];
            if (step === undefined) return;
            event.preventDefault();
            this.choose(this.query + step);
        });
        const at = (/** @type {PointerEvent} */ event) => {
            const place = this.svg.getBoundingClientRect(), found = this.picture?.at(event.clientX - place.left, event.clientY - place.top) ?? 0;
            if (this.numbers.data.queries === undefined) this.choose(found);
        };
        this.svg.addEventListener("pointerdown", at);
        this.svg.addEventListener("pointermove", event => { if (event.buttons !== 0) at(event); });
        new ResizeObserver(() => this.draw()).observe(this.root);
        addEventListener("beforeprint", () => this.draw());
    }

    isOn() {
        return this.target.some((factor, t) => factor > 0 && this.numbers.data.terms[t].position);
    }

    /** The big switch. */
    turn(/** @type {number} */ on) {
        this.fade(this.numbers.factors(on));
    }

    choose(/** @type {number} */ query) {
        const inside = Math.min(this.numbers.queries.length - 1, Math.max(0, query));
        if (inside === this.query) return;
        this.query = inside;
        this.draw();
        this.drawHeads();
        this.chosen(this.query, this.head);
    }

    /** Terms come and go by their factors: every frame on the way is a softmax of its own. */
    fade(/** @type {number[]} */ target) {
        const from = this.factors, began = performance.now();
        this.target = target;
        this.showSwitches();
        if (this.still.matches) {
            this.factors = target;
            this.draw();
            return;
        }
        const frame = (/** @type {number} */ now) => {
            if (this.target !== target) return;
            const share = Math.min(1, Math.max(0, (now - began) / FADE)), eased = share * share * (3 - 2 * share);
            this.factors = share === 1 ? target : target.map((factor, t) => from[t] + (factor - from[t]) * eased);
            this.draw();
            if (share < 1) requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    }

    makeTerms() {
        this.terms.replaceChildren(...this.numbers.data.terms.map((term, t) => {
            const input = element("input", { type: "checkbox", checked: true });
            input.addEventListener("change", () => this.fade(this.target.map((factor, other) => (other === t ? 1 - factor : factor))));
            return element("label", {}, input, element("span", { className: "swatch t" + t }), element("span", {}, termText(term.name) + " ", element("small", {}, formulaText(term.formula))));
        }));
        this.showSwitches();
    }

    showSwitches() {
        this.big.setAttribute("aria-checked", String(this.isOn()));
        this.terms.querySelectorAll("input").forEach((input, t) => { input.checked = this.target[t] > 0; });
    }

    makeLayers() {
        const { heads } = this.numbers.data, layers = [...new Set(heads.map(head => head.layer))];
        this.layers.hidden = layers.length < 2;
        const menu = select(layers.map(layer => [String(layer), "layer " + layer]), String(heads[this.head].layer));
        menu.setAttribute("aria-label", "Layer");
        menu.addEventListener("change", () => {
            this.head = heads.findIndex(head => head.layer === Number(menu.value));
            this.makeHeads();
            this.draw();
        });
        this.layers.replaceChildren(menu);
    }

    /** The heads of the layer as small multiples, each with a name that its weights give it. */
    makeHeads() {
        const { heads } = this.numbers.data, layer = heads[this.head].layer;
        this.shown = heads.map((_, head) => head).filter(head => heads[head].layer === layer);
        this.heads.hidden = this.shown.length < 2;
        this.heads.replaceChildren(...this.shown.map(head => {
            const found = headName(this.numbers, head), small = document.createElementNS("http://www.w3.org/2000/svg", "svg");
            small.setAttribute("aria-hidden", "true");
            const button = element("button", { type: "button", role: "radio" }, small,
                element("span", {}, `head ${heads[head].head}: ${found.name}`), element("small", {}, found.share > 0 ? ` ${percent(found.share)}` : ""));
            button.addEventListener("click", () => this.chooseHead(head));
            button.addEventListener("keydown", event => {
                const step = STEPS[event.key], at = this.shown.indexOf(head) + step;
                if (step === undefined || this.shown[at] === undefined) return;
                event.preventDefault();
                this.chooseHead(this.shown[at]);
                /** @type {HTMLElement} */ (this.heads.children[at]).focus();
            });
            return button;
        }));
        this.drawHeads();
    }

    chooseHead(/** @type {number} */ head) {
        this.head = head;
        this.draw();
        this.drawHeads();
        this.chosen(this.query, this.head);
    }

    drawHeads() {
        [...this.heads.children].forEach((button, i) => {
            const svg = /** @type {SVGElement} */ (button.firstChild), picture = headPicture(this.numbers, this.shown[i], this.query, 168);
            button.setAttribute("aria-checked", String(this.shown[i] === this.head));
            /** @type {HTMLElement} */ (button).tabIndex = this.shown[i] === this.head ? 0 : -1;
            svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
            svg.innerHTML = picture.markup;
        });
    }

    draw() {
        const width = Math.max(280, Math.floor(this.root.clientWidth || 640));
        const picture = switchPicture(this.numbers, this, width, this.id);
        this.picture = picture;
        this.svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
        this.svg.setAttribute("width", String(picture.width));
        this.svg.setAttribute("height", String(picture.height));
        this.svg.setAttribute("aria-activedescendant", `${this.id}-${this.query}`);
        this.svg.innerHTML = picture.markup;
        const said = switchSentence(this.numbers, this.head, this.query);
        if (this.sentence.textContent !== said) this.sentence.textContent = said;
    }
}
