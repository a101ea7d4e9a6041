// SPDX-License-Identifier: Apache-2.0
// The library in the browser: web/wasm behind a class. Every number that the page shows
// comes from here. Arrays are views into the module's memory and are made anew after each
// call, because memory that grows detaches older views.

/**
 * @typedef {{name: string, kind: string, required: number, levels: number, help: string, with: string | null,
 *   minimum: number | null, maximum: number | null, preset: number | null,
 *   choices: {name: string, value: number}[]}} Option
 * @typedef {{name: string, terms: number, traits: number, title: string, formula: string, citation: string,
 *   rule: string, scale: string, options: Option[]}} Scheme
 * @typedef {{place: number, name: string, ink: number, formula: string}} Term
 * @typedef {{scheme: string, length: number, heads: number, dim: number, scale: number, pairs: number,
 *   terms: Term[], options: Record<string, number>}} Call
 * @typedef {{terms: Float64Array[], score: Float64Array, weight: Float64Array, visible: Uint8Array}} Explained
 * @typedef {{scheme: string, options: [string, string][], tokens: string[], causal: boolean, windowLeft: number,
 *   windowRight: number, scale: number | null, seed: number, weights: string}} Request
 */

/** LOCUS_TERM_ bits of include/locus/scheme.h. */
export const TERM = { bias: 1 << 4, rotation: 1 << 6, input: 1 << 7 };

/** A line from C that says what was found and what was expected. */
export class Refused extends Error {}

/** A request as web/wasm/call.c reads it: one KEY VALUE per line. */
export function requestText(/** @type {Request} */ request) {
    const lines = [
        "scheme " + request.scheme,
        "causal " + (request.causal ? 1 : 0),
        "window_left " + request.windowLeft,
        "window_right " + request.windowRight,
        "seed " + request.seed,
    ];
    if (request.weights !== "") lines.push("weights " + request.weights);
    if (request.scale !== null) lines.push("scale " + request.scale);
    for (const [name, value] of request.options) lines.push("option " + name + " " + value);
    for (const token of request.tokens) lines.push("token " + token);
    return lines.map(line => line.replace(/[\0\n\r]/g, " ")).join("\n");
}

export class Locus {
    /** @param {any} exports of the module */
    constructor(exports) {
        this.exports = exports;
        this.encoder = new TextEncoder();
        this.decoder = new TextDecoder();
        const seed = crypto.getRandomValues(new Uint32Array(2));
        exports.page_random(seed[0], seed[1]);
        /** @type {Call[]} */
        this.calls = [];
        exports.page_schemes();
        /** @type {Scheme[]} */
        this.schemes = JSON.parse(this.text());
        /** Schemes that have a trained layer, with its options; the scheme of its attention where that is another
         * (positions of the input); the characters that it knows. */
        this.trained = {
            options: /** @type {Map<string, [string, string][]>} */ (new Map()),
            attention: /** @type {Map<string, string>} */ (new Map()), characters: "",
        };
    }

    /** @param {ArrayBuffer} file tools/trained.py makes it */
    addTrained(file) {
        const at = this.exports.page_buffer(file.byteLength);
        new Uint8Array(this.exports.memory.buffer).set(new Uint8Array(file), at);
        this.check(this.exports.page_trained(file.byteLength));
        const bytes = Number(new DataView(file).getBigUint64(0, true));
        const metadata = JSON.parse(this.decoder.decode(new Uint8Array(file, 8, bytes))).__metadata__;
        this.trained.characters = metadata.characters;
        for (const [key, text] of Object.entries(metadata)) {
            if (key.startsWith("attention.")) this.trained.attention.set(key.slice(10), String(text));
            if (!key.startsWith("options.")) continue;
            const pairs = String(text).split(",").filter(part => part !== "").map(part => part.split("="));
            this.trained.options.set(key.slice(8), /** @type {[string, string][]} */ (pairs));
        }
    }

    /** @param {ArrayBuffer} wasm */
    static async start(wasm) {
        const { instance } = await WebAssembly.instantiate(wasm, {});
        return new Locus(instance.exports);
    }

    bytes() {
        const at = this.exports.page_text(), count = this.exports.page_text_bytes();
        return new Uint8Array(this.exports.memory.buffer, at, count);
    }

    text() {
        return this.decoder.decode(this.bytes());
    }

    version() {
        const memory = new Uint8Array(this.exports.memory.buffer);
        const at = this.exports.page_version();
        return this.decoder.decode(memory.subarray(at, memory.indexOf(0, at)));
    }

    /** @param {string} text */
    give(text) {
        const bytes = this.encoder.encode(text);
        const at = this.exports.page_buffer(bytes.length);
        new Uint8Array(this.exports.memory.buffer).set(bytes, at);
    }

    /** @param {number} status of an exported function */
    check(status) {
        if (status !== 0) throw new Refused(this.text());
    }

    /** @param {number} slot @param {Request} request @returns {Call} */
    call(slot, request) {
        this.give(requestText(request));
        this.check(this.exports.page_call(slot));
        this.check(this.exports.page_describe(slot));
        return this.calls[slot] = JSON.parse(this.text());
    }

    /** @param {number} slot @param {number} head @param {number} off bits of terms @returns {Explained} */
    explain(slot, head, off) {
        const call = this.calls[slot], pairs = call.length * call.length;
        this.check(this.exports.page_explain(slot, head, off));
        const memory = this.exports.memory.buffer;
        const doubles = (/** @type {number} */ at) => new Float64Array(memory, at, pairs);
        const terms = this.exports.page_terms(slot);
        return {
            terms: call.terms.map((_, t) => doubles(terms + 8 * t * pairs)),
            score: doubles(this.exports.page_score(slot)),
            weight: doubles(this.exports.page_weight(slot)),
            visible: new Uint8Array(memory, this.exports.page_visible(slot), pairs),
        };
    }

    /** Rows of relative tables and of `bias` for distances first .. first + count - 1 (m - n); -1: none. */
    rows(/** @type {number} */ slot, /** @type {number} */ first, /** @type {number} */ count) {
        const at = this.exports.page_rows(slot, first, count);
        if (at === 0) throw new Refused(this.text());
        const all = new Float64Array(this.exports.memory.buffer, at, 2 * count);
        return { table: all.subarray(0, count), bias: all.subarray(count) };
    }

    /** Frequency and logarithm of the gain, pair after pair. */
    turns(/** @type {number} */ slot) {
        const at = this.exports.page_turns(slot);
        if (at === 0) throw new Refused(this.text());
        return new Float64Array(this.exports.memory.buffer, at, 2 * this.calls[slot].pairs);
    }

    /** p_m · p_n of a table of sinusoids, [count][count]. */
    similarity(/** @type {number} */ count, /** @type {string} */ table) {
        const at = this.exports.page_similarity(count, ["paper", "t2t", "half"].indexOf(table));
        return new Float64Array(this.exports.memory.buffer, at, count * count);
    }

    /** out and lse of the kernels, for the test that compares bits. */
    forward(/** @type {number} */ slot) {
        const at = this.exports.page_forward(slot);
        if (at === 0) throw new Refused(this.text());
        return new Float32Array(this.exports.memory.buffer, at, this.exports.page_forward_count(slot));
    }

    /** What was explained last: every term, the scores, the weights. format 0: SVG, 1: CSV. */
    figure(/** @type {number} */ slot, /** @type {number} */ format) {
        this.check(this.exports.page_figure(slot, format));
        return this.text();
    }

    /** The bytes of a case file with the call. */
    caseFile(/** @type {number} */ slot) {
        this.check(this.exports.page_case(slot));
        return this.bytes().slice();
    }

    /** "#rrggbb" of an ink of the library's pictures. */
    ink(/** @type {number} */ ink, /** @type {boolean} */ dark) {
        return "#" + this.exports.page_ink(ink, dark ? 1 : 0).toString(16).padStart(6, "0");
    }
}

/** @param {string} packed gzip in base64 */
export async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new /** @type {any} */ (globalThis).DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
}
