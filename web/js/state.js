// SPDX-License-Identifier: Apache-2.0
// What the reader chose, and its place in the URL: #s=t5&x=the+cat&m=3. Only what differs from
// the start is written; what cannot be read is passed over and reported.

export const LONGEST = 64; // tokens
export const SENTENCE = "the cat sat on the mat because it was tired";
export const LETTERS = "it is a truth"; // what trained models read at first, a character a token

/**
 * @typedef {{sentence: string, scheme: string, second: string, head: number, query: number, key: number,
 *   causal: boolean, windowLeft: number, windowRight: number, scale: number | null, seed: number,
 *   trained: boolean, off: number, options: Map<string, string>, secondOptions: Map<string, string>}} State
 */

/**
 * Numbers that are made up: what an address is relative to.
 * @returns {State}
 */
export function plainState() {
    return {
        sentence: SENTENCE, scheme: "t5", second: "", head: 0, query: 7, key: 1, causal: false,
        windowLeft: -1, windowRight: -1, scale: null, seed: 2017, trained: false, off: 0,
        options: new Map(), secondOptions: new Map(),
    };
}

/**
 * What the page begins with: numbers of a trained layer, which sees what came before.
 * @returns {State}
 */
export function startState() {
    return { ...plainState(), trained: true, causal: true, sentence: LETTERS, query: 11, key: 8, head: 1 };
}

/** Words of a sentence, without control characters; at most LONGEST. */
export function tokensOf(/** @type {string} */ sentence) {
    const clean = sentence.slice(0, 4096).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/g, " ");
    return clean.split(/\s+/u).filter(word => word !== "").slice(0, LONGEST);
}

/** How many words do not fit. */
export function wordsLeftOut(/** @type {string} */ sentence) {
    const words = sentence.split(/\s+/u).filter(word => word !== "").length;
    return Math.max(0, words - tokensOf(sentence).length);
}

/** The start of a text and the characters that the trained models know, a token each; a space is ␣. */
export function charactersOf(/** @type {string} */ sentence, /** @type {string} */ known) {
    const all = [...sentence.slice(0, 4096).toLowerCase()].filter(character => known.includes(character));
    return ["BOS", ...all.map(character => (character === " " ? "␣" : character))].slice(0, LONGEST);
}

const whole = (/** @type {number} */ low, /** @type {number} */ high) => (/** @type {string} */ text) =>
    /^-?\d{1,7}$/.test(text) && Number(text) >= low && Number(text) <= high ? Number(text) : undefined;
const real = (/** @type {string} */ text) =>
    text !== "" && Number.isFinite(Number(text)) && Math.abs(Number(text)) <= 1e6 ? Number(text) : undefined;
const name = (/** @type {string} */ text) => (/^[a-z0-9_]{0,32}$/.test(text) ? text : undefined);
const flag = (/** @type {string} */ text) => (text === "1" ? true : text === "0" ? false : undefined);

/** options as name:value;name:value */
function readOptions(/** @type {string} */ text) {
    const options = new Map();
    for (const part of text.split(";").slice(0, 16)) {
        const match = /^([a-z0-9_]{1,32}):([a-z0-9_.+-]{1,32})$/.exec(part);
        if (match === null) return undefined;
        options.set(match[1], match[2]);
    }
    return options;
}
const writeOptions = (/** @type {Map<string, string>} */ options) =>
    [...options].map(([key, value]) => key + ":" + value).join(";");

/** @type {{key: string, field: keyof State, read: (text: string) => any, write?: (value: any) => string}[]} */
const FIELDS = [
    { key: "s", field: "scheme", read: name },
    { key: "t", field: "second", read: name },
    { key: "x", field: "sentence", read: text => text.slice(0, 4096) },
    { key: "h", field: "head", read: whole(0, 3) },
    { key: "m", field: "query", read: whole(0, LONGEST - 1) },
    { key: "n", field: "key", read: whole(0, LONGEST - 1) },
    { key: "c", field: "causal", read: flag, write: value => (value ? "1" : "0") },
    { key: "wl", field: "windowLeft", read: whole(-1, LONGEST) },
    { key: "wr", field: "windowRight", read: whole(-1, LONGEST) },
    { key: "k", field: "scale", read: real },
    { key: "z", field: "seed", read: whole(0, 1000000) },
    { key: "w", field: "trained", read: flag, write: value => (value ? "1" : "0") },
    { key: "off", field: "off", read: whole(0, 4095) },
    { key: "o", field: "options", read: readOptions, write: writeOptions },
    { key: "p", field: "secondOptions", read: readOptions, write: writeOptions },
];

/** An address without fields is the place of a heading, and says nothing about the view. */
export const isAnchor = (/** @type {string} */ hash) => !hash.includes("=");

/** @param {string} hash @returns {{state: State, bad: string[]}} */
export function readHash(hash) {
    if (isAnchor(hash)) return { state: startState(), bad: [] };
    const state = plainState(), bad = [];
    for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
        const field = FIELDS.find(f => f.key === key);
        const value = field?.read(text);
        if (field === undefined || value === undefined) bad.push(key);
        else /** @type {any} */ (state)[field.field] = value;
    }
    return { state, bad };
}

/** @param {State} state */
export function writeHash(state) {
    const plain = plainState(), out = new URLSearchParams();
    for (const { key, field, write } of FIELDS) {
        const text = (/** @type {State} */ s) => (write ?? String)(s[field]);
        if (text(state) !== text(plain) || key === "s") out.set(key, text(state));
    }
    return "#" + out.toString();
}
