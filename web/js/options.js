// SPDX-License-Identifier: Apache-2.0
// Controls for the options of a scheme, built from its declaration.

import { element, field, select } from "./dom.js";
import { TERM } from "./module.js";

/** @typedef {import("./module.js").Option} Option */

/** How far sliders go: where something is to be seen with 64 tokens at most. */
const REACH = /** @type {Record<string, {low: number, high: number}>} */ ({
    clip_left: { low: 0, high: 16 },
    clip_right: { low: 0, high: 16 },
    buckets: { low: 4, high: 64 },
    max_distance: { low: 5, high: 128 },
    span: { low: 4, high: 32 },
    clamp: { low: 0, high: 16 },
    base: { low: 2, high: 100000 },
    theta_scale: { low: 0.05, high: 4 },
    scale_base: { low: 8, high: 2048 },
    first_position: { low: 0, high: 64 },
    x_scale: { low: 0, high: 8 },
    width: { low: 2, high: 16 },
});

/** Options with nothing to move here: a first distance, positions along two axes, what lies beyond a table that serves every distance. */
const without = (/** @type {Option} */ option) => ["delta_min", "axes"].includes(option.name) || option.name === "clamp" && option.maximum === 1;

/**
 * What else an option moves, from its new value and the other values of the call: DeBERTa has as many buckets as its span, and the
 * farthest distance must lie beyond those that have a bucket each.
 * @type {Record<string, Record<string, (value: number, values: Record<string, number>) => Record<string, number>>>}
 */
const TOGETHER = {
    deberta: {
        span: (span, values) => ({ buckets: span, max_distance: Math.max(values.max_distance, span) }),
        max_distance: (distance, values) => ({ span: Math.min(values.span, distance), buckets: Math.min(values.span, distance) }),
    },
};
TOGETHER.t5 = TOGETHER.tupe = TOGETHER.wavlm = {
    buckets: (buckets, values) => ({ max_distance: Math.max(values.max_distance, buckets) }),
    max_distance: (distance, values) => ({ buckets: Math.min(values.buckets, 2 * Math.floor(distance / 2)) }),
};
const ALONG = /** @type {Record<string, string[]>} */ ({ deberta: ["buckets"] }); // moved by their partner alone

export const controlText = (/** @type {number} */ value) =>
    Number.isFinite(value) ? String(+value.toPrecision(4)).replace("-", "−") : "hidden";

const wordsOf = (/** @type {string} */ name) => name.replaceAll("_", " ");
const asSentence = (/** @type {string} */ help) => help.charAt(0).toUpperCase() + help.slice(1);

/**
 * `moved`: what shows a value that a partner moved.
 * @typedef {{option: Option, value: number, set: (value: string) => void, moved: Map<string, (value: number) => void>}} Control
 */

/** @param {Control} control */
function choice({ option, value, set }) {
    const name = option.choices.find(c => c.value === value)?.name ?? option.choices[0].name;
    const control = select(option.choices.map(c => [c.name, c.name]), name);
    control.addEventListener("change", () => set(control.value));
    return field(wordsOf(option.name), control, asSentence(option.help));
}

/** @param {Control} control */
function checkBox({ option, value, set }) {
    const control = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", checked: value === 1 }));
    control.addEventListener("change", () => set(control.checked ? "1" : "0"));
    return field(wordsOf(option.name), control, asSentence(option.help));
}

/**
 * A slider and the number beside its name.
 * @param {Control} control
 */
function slider({ option, value, set, moved }) {
    const reach = REACH[option.name] ?? { low: option.minimum ?? 0, high: Math.min(option.maximum ?? 64, 64) };
    const even = option.name === "buckets" || option.name === "width";
    const step = option.kind === "integer" ? (even ? 2 : 1) : "any";
    const range = /** @type {HTMLInputElement} */ (element("input", {
        type: "range", min: String(Math.min(reach.low, value)), max: String(Math.max(reach.high, value)), step: String(step), value: String(value),
    }));
    const output = element("output", {}, controlText(value));
    range.addEventListener("input", () => {
        const chosen = String(+Number(range.value).toPrecision(6));
        output.textContent = chosen;
        set(chosen);
    });
    const box = field(wordsOf(option.name), range, asSentence(option.help));
    box.firstElementChild?.append(" ", output);
    moved.set(option.name, other => {
        range.value = String(other);
        output.textContent = String(other);
    });
    return box;
}

/**
 * @param {import("./module.js").Scheme} scheme @param {Map<string, string>} chosen what the reader moved
 * @param {Record<string, number>} values of the call on the screen @param {() => void} changed
 */
export function optionControls(scheme, chosen, values, changed) {
    const level = (scheme.terms & TERM.input) !== 0 ? 2 : 1; // of the call that the page makes
    const now = { ...values }, moved = new Map();
    const set = (/** @type {string} */ name, /** @type {string} */ value) => {
        chosen.set(name, value);
        now[name] = Number(value);
        for (const [other, follows] of Object.entries(TOGETHER[scheme.name]?.[name]?.(Number(value), now) ?? {})) {
            chosen.set(other, String(follows));
            now[other] = follows;
            moved.get(other)?.(follows);
        }
        changed();
    };
    return scheme.options.filter(option => (option.levels & level) !== 0 && !without(option) && !ALONG[scheme.name]?.includes(option.name))
        .map(option => {
            const make = option.kind === "choice" ? choice : option.minimum === 0 && option.maximum === 1 ? checkBox : slider;
            const own = values[option.name] === 0 && Number(option.minimum) > 0 ? REACH[option.name].high : values[option.name]; // 0: as many as there are
            return make({ option, value: own, set: value => set(option.name, value), moved });
        });
}
