// SPDX-License-Identifier: Apache-2.0
// The position switch, its picture: a line of words, arcs from the query to the keys, below each word the terms of its
// score. Text in, text out: the page, `locus explain -o page.html` and the stills of docs/ draw with it.
// Colours are classes: ink, faint, line, paper, and t0, t1, ... for the terms.

import { percent } from "./switch_numbers.js";

/** @typedef {import("./switch_numbers.js").SwitchNumbers} SwitchNumbers */
/** @typedef {import("./switch_numbers.js").SwitchRow} SwitchRow */
/** @typedef {{width: number, height: number, markup: string, at: (x: number, y: number) => number}} SwitchPicture */

const LETTER = 0.56; // width of a letter of a sans-serif face, in units of its size, on the safe side
const fixed = (/** @type {number} */ value) => String(Math.round(100 * value) / 100);
const letters = (/** @type {string} */ text) => [...text].length;

/** Text as markup. */
export const escaped = (/** @type {string} */ text) =>
    text.replace(/[&<>"]/g, letter => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter] ?? "");

/** @param {string} kind class @param {number} x @param {number} y @param {string} text @param {{size?: number, anchor?: string, bold?: boolean}} how */
export function label(kind, x, y, text, { size = 14, anchor = "middle", bold = false } = {}) {
    return `<text class="${kind}" x="${fixed(x)}" y="${fixed(y)}" font-size="${fixed(size)}" text-anchor="${anchor}"${bold ? ' font-weight="700"' : ""}>${escaped(text)}</text>`;
}

const box = (/** @type {string} */ kind, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ width, /** @type {number} */ height, round = 0) =>
    `<rect class="${kind}" x="${fixed(x)}" y="${fixed(y)}" width="${fixed(Math.max(0, width))}" height="${fixed(Math.max(0, height))}"${round > 0 ? ` rx="${round}"` : ""}/>`;

/** Text that is cut to a number of letters, whole characters only (a joined emoji is one). */
function shorten(/** @type {string} */ text, /** @type {number} */ most) {
    const Segmenter = /** @type {any} */ (Intl).Segmenter;
    const pieces = Segmenter === undefined ? [...text] : [...new Segmenter(undefined, { granularity: "grapheme" }).segment(text)].map(piece => piece.segment);
    return pieces.length <= most ? text : pieces.slice(0, Math.max(1, most - 1)).join("") + "…";
}

/** An arc between two places along the words, `rise` away from them; from a place to itself: a loop. */
function arc(/** @type {boolean} */ down, /** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ base, /** @type {number} */ rise, /** @type {number} */ step) {
    const spread = from === to ? step * 0.55 : 0;
    const points = [[from - spread / 3, base], [from - spread, base - rise], [to + spread, base - rise], [to + spread / 3, base]];
    const [a, b, c, d] = points.map(([along, across]) => (down ? `${fixed(across)} ${fixed(along)}` : `${fixed(along)} ${fixed(across)}`));
    return `M${a}C${b} ${c} ${d}`;
}

/** Three round numbers or more of an axis. */
function marks(/** @type {number} */ low, /** @type {number} */ high) {
    const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map(f => f * power).filter(f => Math.floor(high / f) - Math.ceil(low / f) >= 2).pop() ?? power;
    const found = [];
    for (let i = Math.ceil(low / step); i <= Math.floor(high / step + 1e-9); i++) found.push(Number((i * step).toPrecision(6)));
    return found;
}

/**
 * The stacked parts of one key as boxes along the axis of scores, and their sum as a dot.
 * @param {SwitchRow} row @param {number} n @param {(score: number) => number} place @param {boolean} down @param {number} at @param {number} wide
 */
function stack(row, n, place, down, at, wide) {
    let up = 0, below = 0, out = "";
    row.parts.forEach((part, t) => {
        const value = part[n], from = value > 0 ? up : below;
        if (!(Math.abs(value) > 0)) return;
        const [a, b] = [place(from), place(from + value)], start = Math.min(a, b), length = Math.abs(a - b);
        out += down ? box("t" + t, start, at - wide / 2, length, wide) : box("t" + t, at - wide / 2, start, wide, length);
        if (value > 0) up += value; else below += value;
    });
    if (!row.seen[n]) return out;
    const [x, y] = down ? [place(row.score[n]), at] : [at, place(row.score[n])];
    return out + `<circle class="dot" cx="${fixed(x)}" cy="${fixed(y)}" r="${fixed(Math.min(5, wide / 3))}"/>`;
}

/** The words in one line, with room left for the numbers of the axis: the query filled, the weights as arcs above and per cent below, the terms as bars. */
function across(/** @type {SwitchNumbers} */ numbers, /** @type {number} */ query, /** @type {SwitchRow} */ row, /** @type {{low: number, high: number}} */ reach, /** @type {number} */ width, /** @type {string} */ id) {
    const tokens = numbers.data.tokens, left = 46, step = (width - left - 6) / tokens.length;
    const longest = Math.max(...tokens.map(letters)), size = Math.max(11, Math.min(18, (step - 6) / (longest * LETTER)));
    const base = 128, words = base + 27, shares = words + 27, top = shares + 26, bottom = top + 132;
    const x = (/** @type {number} */ n) => left + (n + 0.5) * step, same = numbers.data.queries === undefined;
    const y = (/** @type {number} */ score) => top + (reach.high - score) / (reach.high - reach.low) * (bottom - top);
    const parts = [];
    for (const mark of marks(reach.low, reach.high))
        parts.push(box(mark === 0 ? "zero" : "line", left, y(mark) - 0.5, width - left - 6, 1), label("faint", left - 6, y(mark) + 4, String(mark).replace("-", "−"), { size: 11, anchor: "end" }));
    parts.push(label("faint", left - 6, top - 9, "score", { size: 11, anchor: "end" }), label("faint", left - 6, shares, "weight", { size: 11, anchor: "end" }));
    const best = row.weight.indexOf(Math.max(...row.weight)), from = same ? x(query) : left;
    tokens.forEach((_, n) => {
        const weight = row.weight[n], wide = 22 * weight;
        const rise = same && n === query ? 92 : Math.min(base - 12, 46 + 0.34 * Math.abs(x(n) - from)) * 1.2;
        if (weight >= 0.005) parts.push(`<path class="arc" d="${arc(false, from, x(n), base, Math.min(rise, 150), step)}" stroke-width="${fixed(Math.max(1, wide))}" opacity="${fixed(0.25 + 0.75 * weight)}"/>`);
    });
    tokens.forEach((token, n) => {
        const text = shorten(token, Math.max(2, Math.floor((step - 4) / (size * LETTER)))), filled = same && n === query;
        const wide = Math.min(step - 2, letters(text) * size * 0.6 + 16), kind = filled ? "paper" : row.seen[n] ? "ink" : "faint";
        parts.push(`<g id="${id}-${n}" role="option" aria-selected="${filled}" aria-label="${escaped(token)}, weight ${percent(row.weight[n])}">`,
            box(filled ? "fill" : "free", x(n) - wide / 2, words - size - 5, wide, size + 13, 7), label(kind, x(n), words, text, { size }), "</g>",
            label(n === best ? "ink" : "faint", x(n), shares, row.seen[n] ? percent(row.weight[n]) : "hidden", { size: step < 44 ? 11 : 13, bold: n === best && row.seen[n] }),
            stack(row, n, y, false, x(n), Math.min(36, step * 0.5)));
    });
    return { width, height: bottom + 8, markup: parts.join(""), at: (/** @type {number} */ px) => Math.floor((px - left) / step) };
}

/** The same with the words one below the other, for narrow places and long texts: arcs left, bars right. */
function below(/** @type {SwitchNumbers} */ numbers, /** @type {number} */ query, /** @type {SwitchRow} */ row, /** @type {{low: number, high: number}} */ reach, /** @type {number} */ width, /** @type {string} */ id) {
    const tokens = numbers.data.tokens, top = 22, step = tokens.length > 20 ? 24 : 31, size = 14;
    const base = Math.min(92, width * 0.2), longest = Math.min(Math.max(...tokens.map(letters)), Math.floor(width * 0.27 / (size * LETTER)));
    const words = base + 8, shares = words + longest * size * 0.6 + 16 + 42, left = shares + 14, right = width - 10;
    const y = (/** @type {number} */ n) => top + (n + 0.5) * step, same = numbers.data.queries === undefined;
    const x = (/** @type {number} */ score) => left + (score - reach.low) / (reach.high - reach.low) * (right - left);
    const parts = [], height = top + step * tokens.length + 4, best = row.weight.indexOf(Math.max(...row.weight));
    const ticks = marks(reach.low, reach.high), last = ticks.length - 1;
    ticks.forEach((mark, i) => {
        parts.push(box(mark === 0 ? "zero" : "line", x(mark) - 0.5, top, 1, height - top - 4));
        if (i % 2 === last % 2 || ticks.length < 5) parts.push(label("faint", x(mark), 14, String(mark).replace("-", "−"), { size: 11 }));
    });
    parts.push(label("faint", shares, 14, "weight", { size: 11, anchor: "end" }));
    const from = same ? y(query) : top;
    tokens.forEach((_, n) => {
        const weight = row.weight[n], rise = same && n === query ? base * 0.9 : Math.min(base * 1.2, 24 + 0.3 * Math.abs(y(n) - from));
        if (weight >= 0.005) parts.push(`<path class="arc" d="${arc(true, from, y(n), base, rise, step)}" stroke-width="${fixed(Math.max(1, 16 * weight))}" opacity="${fixed(0.25 + 0.75 * weight)}"/>`);
    });
    tokens.forEach((token, n) => {
        const text = shorten(token, longest), filled = same && n === query, kind = filled ? "paper" : row.seen[n] ? "ink" : "faint";
        const wide = letters(text) * size * 0.6 + 14;
        parts.push(`<g id="${id}-${n}" role="option" aria-selected="${filled}" aria-label="${escaped(token)}, weight ${percent(row.weight[n])}">`,
            box(filled ? "fill" : "free", words - 4, y(n) - 12, wide, 24, 6), label(kind, words + 3, y(n) + 5, text, { size, anchor: "start" }), "</g>",
            label(n === best ? "ink" : "faint", shares, y(n) + 4, row.seen[n] ? percent(row.weight[n]) : "hidden", { size: 12, anchor: "end", bold: n === best && row.seen[n] }),
            stack(row, n, x, true, y(n), Math.min(14, step * 0.5)));
    });
    return { width, height, markup: parts.join(""), at: (/** @type {number} */ _, /** @type {number} */ py) => Math.floor((py - top) / step) };
}

/**
 * The picture of one query in a place that is `width` pixels wide.
 * @param {SwitchNumbers} numbers @param {{head: number, query: number, factors: number[]}} state @param {number} width
 * @param {string} id of the words' groups @returns {SwitchPicture}
 */
export function switchPicture(numbers, { head, query, factors }, width, id) {
    const tokens = numbers.data.tokens, longest = Math.max(...tokens.map(letters));
    const fits = (width - 52) / tokens.length >= Math.max(30, Math.min(longest, 10) * 11 * LETTER + 6);
    const row = numbers.row(head, query, factors), reach = numbers.reach(head, query);
    return (fits && width >= 560 ? across : below)(numbers, query, row, reach, width, id);
}

/**
 * A small picture of one query of a head: arcs over a row of ticks.
 * @param {SwitchNumbers} numbers @param {number} head @param {number} query @param {number} width
 */
export function headPicture(numbers, head, query, width) {
    const row = numbers.row(head, query, numbers.factors(1)), step = width / numbers.keys, base = 42, same = numbers.data.queries === undefined;
    const x = (/** @type {number} */ n) => (n + 0.5) * step, from = same ? x(query) : 0;
    const arcs = Array.from(row.weight, (weight, n) => (weight < 0.02 ? "" :
        `<path class="arc" d="${arc(false, from, x(n), base, same && n === query ? 34 : Math.min(48, 14 + 0.4 * Math.abs(x(n) - from)), Math.max(step, 14))}" stroke-width="${fixed(Math.max(0.75, 9 * weight))}" opacity="${fixed(0.25 + 0.75 * weight)}"/>`));
    const dots = Array.from(row.weight, (_, n) => box(same && n === query ? "fill" : "line", x(n) - Math.min(3, step / 3), base + 2, Math.min(6, step * 0.66), 5, 1));
    return { width, height: 52, markup: arcs.join("") + dots.join("") };
}
