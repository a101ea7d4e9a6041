// SPDX-License-Identifier: Apache-2.0
// The position switch, its numbers: the terms of a head, what becomes of its weights when terms are left out, and words for it.

/**
 * `position`: 1 where the term goes with the big switch; `inks`: its colour on light and on dark paper. `numbers` are the
 * terms, [terms][queries][keys], NaN where a query does not see a key, as doubles or as base64 of their bytes.
 * @typedef {{name: string, formula: string, position: number, inks: string[]}} SwitchTerm
 * @typedef {{layer: number, head: number, sink?: number | null, numbers: string | Float64Array}} SwitchHead
 * @typedef {{title: string, about: string, tokens: string[], queries?: string[], terms: SwitchTerm[], softcap?: number,
 *   heads: SwitchHead[], start?: {head: number, query: number}}} SwitchData
 * @typedef {{parts: Float64Array[], score: Float64Array, weight: Float64Array, seen: boolean[]}} SwitchRow
 */

/**
 * Doubles of base64, lowest byte first.
 * @param {string | Float64Array} numbers
 */
export function doublesOf(numbers) {
    if (typeof numbers !== "string") return numbers;
    const bytes = Uint8Array.from(atob(numbers), letter => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

export class SwitchNumbers {
    /** @param {SwitchData} data */
    constructor(data) {
        const shown = (/** @type {string} */ token) => (token === "Ġ" || token === "▁" ? "␣" : token); // a space of its own
        this.data = { ...data, tokens: data.tokens.map(shown), queries: data.queries?.map(shown) };
        this.queries = this.data.queries ?? this.data.tokens;
        this.heads = data.heads.map(head => doublesOf(head.numbers));
        this.keys = data.tokens.length;
    }

    /** How much of each term counts with the big switch off (0) or on (1). */
    factors(/** @type {number} */ on) {
        return this.data.terms.map(term => (term.position ? on : 1));
    }

    /**
     * One query of a head, each term times its factor: softmax of their sum.
     * @param {number} head @param {number} query @param {number[]} factors @returns {SwitchRow}
     */
    row(head, query, factors) {
        const K = this.keys, Q = this.queries.length, numbers = this.heads[head];
        const parts = factors.map((factor, t) => numbers.subarray((t * Q + query) * K, (t * Q + query + 1) * K).map(value => factor * value));
        const seen = Array.from({ length: K }, (_, n) => !Number.isNaN(numbers[query * K + n]));
        const cap = this.data.softcap ?? 0;
        const score = Float64Array.from({ length: K }, (_, n) => {
            const sum = parts.reduce((all, part) => all + part[n], 0);
            return !seen[n] ? -Infinity : cap > 0 ? cap * Math.tanh(sum / cap) : sum;
        });
        const sink = this.data.heads[head].sink ?? -Infinity;
        const most = score.reduce((top, value) => Math.max(top, value), sink);
        const raised = score.map(value => Math.exp(value - most));
        const all = raised.reduce((sum, value) => sum + value, Math.exp(sink - most));
        return { parts, score, weight: raised.map(value => (all > 0 ? value / all : 0)), seen };
    }

    /** Limits of the stacked parts of a query with every term on: they stay while terms come and go. */
    reach(/** @type {number} */ head, /** @type {number} */ query) {
        const { parts } = this.row(head, query, this.factors(1));
        let low = 0, high = 0;
        for (let n = 0; n < this.keys; n++) {
            let down = 0, up = 0;
            for (const part of parts) if (part[n] > 0) up += part[n]; else if (part[n] < 0) down += part[n];
            low = Math.min(low, down);
            high = Math.max(high, up);
        }
        return low === high ? { low: -1, high: 1 } : { low, high };
    }

    /** How far the weights of a query move when position is switched on: 0 nothing, 1 all of them. */
    moved(/** @type {number} */ head, /** @type {number} */ query) {
        const off = this.row(head, query, this.factors(0)).weight, on = this.row(head, query, this.factors(1)).weight;
        return on.reduce((sum, weight, n) => sum + Math.abs(weight - off[n]) / 2, 0);
    }

    /** The head and the query with which to begin, where the data do not say: those that position moves most. */
    start() {
        if (this.data.start !== undefined) return this.data.start;
        const best = { head: 0, query: 0, moved: -1 };
        this.heads.forEach((_, head) => {
            const all = this.queries.map((_, query) => this.moved(head, query));
            const mean = all.reduce((sum, value) => sum + value, 0) / all.length;
            if (mean > best.moved) Object.assign(best, { head, query: all.indexOf(Math.max(...all)), moved: mean });
        });
        return { head: best.head, query: best.query };
    }
}

// ---- words ----

export const percent = (/** @type {number} */ weight) => Math.round(100 * weight) + "\u00a0%";

/** A formula with real minus signs and dots. */
export const formulaText = (/** @type {string} */ text) => text.replaceAll(" . ", " · ").replaceAll(" - ", " − ").replace(/^-/, "−").replace(/\bw ·/, "v ·"); // the paper's v is the tensor w

/** The name of a term as it is read: "content → position". */
export const termText = (/** @type {string} */ name) => name.replace(/^(content|position)-(content|position)$/, "$1 → $2").replace("u.k", "u · k").replace("w.r", "v · r");

const strongestOf = (/** @type {Float64Array} */ weights) => weights.indexOf(Math.max(...weights));

/**
 * "itself", "the other “the”", "“cabinet”".
 * @param {SwitchNumbers} numbers @param {number} query @param {number} key
 */
export function placeOf(numbers, query, key) {
    const { tokens } = numbers.data, across = numbers.data.queries !== undefined;
    if (!across && key === query) return "itself";
    const same = tokens.map((_, n) => n).filter(n => tokens[n] === tokens[key]);
    if (!across && tokens[key] === numbers.queries[query]) return same.length === 2 ? `the other “${tokens[key]}”` : `another “${tokens[key]}”`;
    return same.length > 1 ? `“${tokens[key]}” (token ${key})` : `“${tokens[key]}”`;
}

/**
 * What the switch changes, as a sentence.
 * @param {SwitchNumbers} numbers @param {number} head @param {number} query
 */
export function switchSentence(numbers, head, query) {
    const off = numbers.row(head, query, numbers.factors(0)).weight, on = numbers.row(head, query, numbers.factors(1)).weight;
    const [first, then] = [strongestOf(off), strongestOf(on)], at = (/** @type {number} */ key) => placeOf(numbers, query, key);
    const word = numbers.queries[query];
    if (!(on[then] > 0)) return `“${word}” sees no token.`;
    if (first === then) return `Without positions “${word}” looks most at ${at(first)} (${percent(off[first])}); with them, too (${percent(on[then])}).`;
    return `Without positions “${word}” looks at ${at(first)} (${percent(off[first])}); with them at ${at(then)} (${percent(on[then])}).`;
}

/**
 * Where a head may look: a name, and the keys of a query that it means.
 * @param {SwitchNumbers} numbers
 */
function habitsOf(numbers) {
    const { tokens } = numbers.data, last = tokens.length - 1;
    const same = (/** @type {number} */ query) => tokens.map((_, n) => n).filter(n => n !== query && tokens[n] === numbers.queries[query]);
    const one = (/** @type {number} */ offset) => (/** @type {number} */ query) => [query + offset].filter(n => n >= 0 && n <= last);
    const stops = tokens.map((_, n) => n).filter(n => /^[▁Ġ]?[.!?]$/u.test(tokens[n]));
    const inside = [
        { name: "itself", keys: one(0) }, { name: "one to the left", keys: one(-1) }, { name: "one to the right", keys: one(1) },
        { name: "two to the left", keys: one(-2) }, { name: "two to the right", keys: one(2) }, { name: "the other same word", keys: same },
    ];
    return [...(numbers.data.queries === undefined ? inside : []), { name: `the start, “${tokens[0]}”`, keys: () => [0] },
        { name: "the full stop", keys: () => stops }, { name: `the end, “${tokens[last]}”`, keys: () => [last] }];
}

/**
 * A name for what a head does with position on, found from its weights: the habit that takes the largest mean weight of the
 * queries that have such a key; a third of the weight at least, else the head is "spread".
 * @param {SwitchNumbers} numbers @param {number} head @returns {{name: string, share: number}}
 */
export function headName(numbers, head) {
    const rows = numbers.queries.map((_, query) => numbers.row(head, query, numbers.factors(1)));
    let best = { name: "spread", share: 1 / 3 };
    for (const { name, keys } of habitsOf(numbers)) {
        const shares = rows.map((row, query) => keys(query).filter(n => row.seen[n]).map(n => row.weight[n]))
            .filter(found => found.length > 0).map(found => found.reduce((sum, weight) => sum + weight, 0));
        const mean = shares.length > 0 ? shares.reduce((sum, share) => sum + share, 0) / shares.length : 0;
        if (mean > best.share) best = { name, share: mean };
    }
    return best.name === "spread" ? { name: "spread", share: 0 } : best;
}
