// SPDX-License-Identifier: Apache-2.0
// The product of query and key multiplied out: a square of content and position, of which every scheme keeps, drops or
// replaces quarters; and the way from words to the output, with the eight places where a position can enter.

import { label, escaped } from "./switch_picture.js";
import { percent, termText } from "./switch_numbers.js";

/**
 * A quarter or an addition: the term that it is, its formula; no term: struck out.
 * @typedef {{term: string | null, text: string}} Part
 * @typedef {{title: string, quarters: Part[], more: Part[], note: string, steps?: string[][]}} Product
 */

/** The terms in the order of their inks (src/plot/colour.c). */
export const TERM_NAMES = ["content", "content-position", "position-content", "position-position", "bias", "value", "rotation", "input", "other", "u.k", "w.r"];
export const QUARTERS = ["content", "content-position", "position-content", "position-position"];
const WHOLE = ["x_m W_q · x_n W_k", "x_m W_q · p_n W_k", "p_m W_q · x_n W_k", "p_m W_q · p_n W_k"];

const part = (/** @type {string | null} */ term, /** @type {string} */ text) => ({ term, text });
const quarters = (/** @type {(Part | null)[]} */ ...kept) => kept.map((one, i) => one ?? part(null, WHOLE[i]));
const CONTENT = part("content", WHOLE[0]);

/**
 * The order of the article: each is the answer to what the one before it lacked.
 * @type {Record<string, Product>}
 */
export const PRODUCTS = {
    none: { title: "No positions", quarters: quarters(CONTENT, null, null, null), more: [], note: "Order is lost: equal words get equal weights, wherever they stand." },
    sinusoidal: {
        title: "Positions in the input", quarters: WHOLE.map((text, i) => part(QUARTERS[i], text)), more: [part("input", "f(x_i, i) = x_i + p_i")],
        note: "One table, added before W_q, W_k and W_v: all four quarters at once, through the same matrices.",
    },
    shaw: {
        title: "Shaw: distances at the keys", quarters: quarters(CONTENT, part("content-position", "x_m W_q · p^K_{clip(m−n)}"), null, null),
        more: [part("value", "output: + p^V_{clip(m−n)}")], note: "A vector per clipped distance instead of p_n; another one goes into the output.",
    },
    transformer_xl: {
        title: "Transformer-XL", quarters: quarters(CONTENT, part("content-position", "x_m W_q · R_{m−n} W̃_k"), part("u.k", "u · x_n W_k"), part("w.r", "v · R_{m−n} W̃_k")),
        more: [], note: "All four stay, with three replacements: p_n by R, p_m W_q by u and v, W_k by W̃_k.",
        steps: [WHOLE,
            [WHOLE[0], "x_m W_q · R_{m−n} W_k", WHOLE[2], "p_m W_q · R_{m−n} W_k"],
            [WHOLE[0], "x_m W_q · R_{m−n} W_k", "u · x_n W_k", "v · R_{m−n} W_k"],
            [WHOLE[0], "x_m W_q · R_{m−n} W̃_k", "u · x_n W_k", "v · R_{m−n} W̃_k"]],
    },
    t5: { title: "T5", quarters: quarters(CONTENT, null, null, null), more: [part("bias", "+ b_{bucket(m−n)}")], note: "Three quarters give way to one number per head and bucket of distances." },
    tupe: {
        title: "TUPE: untied", quarters: quarters(CONTENT, null, null, part("position-position", "p_m U_q · p_n U_k")), more: [part("bias", "+ b_{bucket(m−n)}")],
        note: "Words and positions each have two matrices of their own, and do not mix.",
    },
    deberta: {
        title: "DeBERTa", quarters: quarters(CONTENT, part("content-position", "x_m W_q · P_{δ(m,n)} P_k"), part("position-content", "P_{δ(n,m)} P_q · x_n W_k"), null),
        more: [], note: "Both crossed terms, by bucketed distance; position with position is thrown away.",
    },
    alibi: { title: "ALiBi", quarters: quarters(CONTENT, null, null, null), more: [part("bias", "− s |m − n|")], note: "A slope per head, nothing learned: far keys lose." },
    rope: { title: "RoPE", quarters: quarters(part("rotation", "ρ_m x_m W_q · ρ_n x_n W_k"), null, null, null), more: [], note: "Queries and keys are turned by their places; of both turns the product sees m − n." },
};

/** Where a position can enter on the way to the output, in that order. */
export const SOCKETS = ["input", "rotation", "content", "content-position", "position-content", "position-position", "bias", "value"];

const signs = (/** @type {string} */ text) => [...text.replace(/[_^{}]/g, "")].length;

/** A formula as markup of an SVG text: _n and ^K stand lower and higher, {} holds more than a letter. */
export function mathMarkup(/** @type {string} */ text) {
    let out = "";
    for (const [, mark, braced, single, other] of text.matchAll(/([_^])(?:\{([^}]*)\}|([^\s]))|([^_^]+)/gu)) {
        if (other !== undefined) out += escaped(other);
        else out += `<tspan font-size="72%" dy="${mark === "_" ? "0.3em" : "-0.45em"}">${escaped(braced ?? single)}</tspan><tspan dy="${mark === "_" ? "-0.216em" : "0.324em"}">\u200b</tspan>`;
    }
    return out;
}

/** @param {string} kind @param {number} x @param {number} y @param {string} text @param {{size?: number, anchor?: string, struck?: boolean, room?: number}} how */
export function formula(kind, x, y, text, { size = 14, anchor = "middle", struck = false, room = Infinity } = {}) {
    const fit = Math.min(size, room / (signs(text) * 0.5)), wide = signs(text) * fit * 0.48;
    const line = struck ? `<rect class="${kind}" x="${x - wide / 2}" y="${y - fit * 0.35}" width="${wide}" height="1.2"/>` : "";
    return `<text class="${kind} formula" x="${x}" y="${y}" font-size="${Math.round(fit * 10) / 10}" text-anchor="${anchor}">${mathMarkup(text)}</text>` + line;
}

const plate = (/** @type {string} */ kind, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ wide, /** @type {number} */ high, round = 0) =>
    `<rect class="${kind}" x="${Math.round(x * 100) / 100}" y="${Math.round(y * 100) / 100}" width="${Math.round(wide * 100) / 100}" height="${Math.round(high * 100) / 100}"${round > 0 ? ` rx="${round}"` : ""}/>`;
export const termClass = (/** @type {string} */ term) => "term-" + term.replace(".", "-");

/** A square as large as a share, where shares are known; else a mark that the term is there. */
function amount(/** @type {string} */ term, /** @type {number | undefined} */ share, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ side, /** @type {number} */ size) {
    const wide = share === undefined ? side / 2 : side * Math.sqrt(Math.max(0, share)), words = share === undefined ? "" : percent(share).replace("-", "−");
    return plate(termClass(term), x - wide / 2, y - wide / 2, wide, wide, 2) + (words && label("ink", x, y + side / 2 + size, words, { size, bold: true }));
}

/**
 * The square of one scheme. `shares`: of each term in what its scores vary by; `step`: of its replacements.
 * @param {string} name @param {number} width @param {Record<string, number> | null} shares @param {number} [step]
 */
export function productPicture(name, width, shares, step) {
    const product = PRODUCTS[name], small = width < 300, size = small ? 11 : 14, head = small ? 30 : 44;
    const side = Math.min(168, (width - head - 6 - (width > 560 ? 150 : 0)) / 2), top = small ? 20 : 26;
    /** @type {string[]} */
    const parts = [];
    ["content x_n", "position p_n"].forEach((text, i) => parts.push(formula("faint", head + side * (i + 0.5), top - 7, text, { size: size - 1 })));
    ["content x_m", "position p_m"].forEach((text, i) => {
        const y = top + side * (i + 0.5);
        parts.push(`<g transform="rotate(-90 ${head - 12} ${y})">${formula("faint", head - 12, y + 4, text, { size: size - 1 })}</g>`);
    });
    product.quarters.forEach((quarter, i) => {
        const x = head + side * (i % 2), y = top + side * (i > 1 ? 1 : 0), middle = x + side / 2, text = step !== undefined && product.steps ? product.steps[step][i] : quarter.text;
        parts.push(plate(quarter.term === null ? "dropped" : "quarter", x + 2, y + 2, side - 4, side - 4, 4));
        if (quarter.term === null) parts.push(formula("faint", middle, y + side / 2 + 4, text, { size, struck: true, room: side - 10 }));
        else parts.push(formula("ink", middle, y + size + 8, text, { size, room: side - 10 }), amount(quarter.term, shares?.[quarter.term], middle, y + size + 12 + (side - 2 * size - 22) / 2, side - 2 * size - 26, size));
    });
    const beside = width > 560, room = beside ? width - head - 2 * side - 16 : 2 * side;
    let bottom = top + 2 * side;
    product.more.forEach((more, i) => {
        const x = beside ? head + 2 * side + 16 + room / 2 : head + room / 2, y = beside ? top + 20 + i * 130 : bottom + size + 8, share = shares?.[more.term ?? ""];
        parts.push(formula("ink", x, y, more.text, { size, room }));
        if (beside && share !== undefined) parts.push(amount(more.term ?? "", share, x, y + 66, side - 2 * size - 26, size));
        else if (beside) parts.push(plate(termClass(more.term ?? ""), x - 7, y + 14, 14, 14, 3));
        else {
            parts.push(plate(termClass(more.term ?? ""), head, y + 7, share === undefined ? 8 : room * Math.max(0, share), 8, 2));
            if (share !== undefined) parts.push(label("ink", head + room * share + 5, y + 15, percent(share), { size: size - 1, anchor: "start", bold: true }));
            bottom = y + 18;
        }
    });
    return { width, height: Math.max(bottom, top + 2 * side) + 6, markup: parts.join("") };
}

/**
 * The stages from the words to the output, and the sockets that each has.
 * @type {{title: string, text: string, sockets: string[]}[]}
 */
const STAGES = [
    { title: "words", text: "w_i", sockets: [] },
    { title: "vectors", text: "x_i", sockets: [] },
    { title: "input", text: "f(x_i, i)", sockets: ["input"] },
    { title: "projections", text: "q_m, k_n, v_n", sockets: ["rotation"] },
    { title: "score", text: "q_m · k_n", sockets: ["content", "content-position", "position-content", "position-position", "bias"] },
    { title: "weights", text: "softmax_n", sockets: [] },
    { title: "output", text: "Σ_n a_{mn} v_n", sockets: ["value"] },
];

/** Which sockets a scheme uses. u · k and v · r stand where they replace a term. */
export function litSockets(/** @type {string} */ name) {
    const { quarters: four, more } = PRODUCTS[name], stands = /** @type {Record<string, string>} */ ({ "u.k": "position-content", "w.r": "position-position" });
    return new Set([...four, ...more].flatMap(({ term }) => (term === null ? [] : [stands[term] ?? term])).filter(term => SOCKETS.includes(term)));
}

/**
 * The process from words to output; sockets of the scheme are lit in the colours of their terms.
 * @param {string} name @param {number} width
 */
export function processPicture(name, width) {
    const down = width < 720, lit = litSockets(name), count = STAGES.length;
    /** @type {string[]} */
    const parts = [];
    const step = width / count, wide = down ? Math.min(150, width * 0.42) : step - 22, high = 44;
    let bottom = 4; // of the stages so far, one below the other
    STAGES.forEach((stage, i) => {
        const x = down ? 2 : i * step + 2, y = down ? bottom : 20, middle = x + wide / 2;
        bottom += Math.max(58, 20 * stage.sockets.length + 8);
        parts.push(plate("quarter", x, y, wide, high, 6), label("faint", middle, y + 16, stage.title, { size: 12 }), formula("ink", middle, y + 35, stage.text, { size: 14, room: wide - 8 }));
        if (i + 1 < count) parts.push(down ? `<path class="arc" d="M${middle} ${y + high + 1}V${bottom - 2}m-3 -4l3 4l3 -4" stroke-width="1.5"/>` : `<path class="arc" d="M${x + wide + 2} ${y + high / 2}h14m-4 -4l4 4l-4 4" stroke-width="1.5"/>`);
        stage.sockets.forEach((socket, s) => {
            const on = lit.has(socket), sx = down ? wide + 24 : x + 9, sy = down ? y + (stage.sockets.length > 1 ? 10 + 20 * s : high / 2) : y + high + 20 + 22 * s;
            parts.push(`<circle class="${on ? termClass(socket) : "socket"}" cx="${sx}" cy="${sy}" r="7"/>`, label(on ? "ink" : "faint", sx + 13, sy + 4, termText(socket), { size: 12, anchor: "start", bold: on }));
        });
    });
    return { width, height: down ? bottom : 20 + high + 20 + 22 * 5, markup: parts.join("") };
}
