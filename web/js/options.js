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
    span: { low: 1, high: 64 },
    clamp: { low: 0, high: 16 },
    base: { low: 2, high: 100000 },
    theta_scale: { low: 0.05, high: 4 },
    scale_base: { low: 8, high: 2048 },
    first_position: { low: 0, high: 64 },
    x_scale: { low: 0, high: 8 },
    width: { low: 2, high: 16 },
});

export const controlText = (/** @type {number} */ value) =>
    Number.isFinite(value) ? String(+value.toPrecision(4)).replace("-", "−") : "hidden";

/** @typedef {{option: Option, value: number, chosen: Map<string, string>, changed: () => void}} Control */

/** @param {Control} control */
function choice({ option, value, chosen, changed }) {
    const name = option.choices.find(c => c.value === value)?.name ?? option.choices[0].name;
    const control = select(option.choices.map(c => [c.name, c.name]), name);
    control.addEventListener("change", () => {
        chosen.set(option.name, control.value);
        changed();
    });
    return field(option.name, control, option.help);
}

/**
 * A slider and the number beside it.
 * @param {Control} control
 */
function slider({ option, value, chosen, changed }) {
    const reach = REACH[option.name] ?? { low: option.minimum ?? 0, high: Math.min(option.maximum ?? 64, 64) };
    const even = option.name === "buckets" || option.name === "width";
    const step = option.kind === "integer" ? (even ? 2 : 1) : "any";
    const range = /** @type {HTMLInputElement} */ (element("input", {
        type: "range", min: String(Math.min(reach.low, value)), max: String(Math.max(reach.high, value)), step: String(step), value: String(value),
    }));
    const output = element("output", {}, String(value));
    range.addEventListener("input", () => {
        chosen.set(option.name, String(+Number(range.value).toPrecision(6)));
        output.textContent = chosen.get(option.name) ?? "";
        changed();
    });
    const box = field(option.name, range, option.help);
    box.append(output);
    return box;
}

/**
 * @param {import("./module.js").Scheme} scheme @param {Map<string, string>} chosen what the reader moved
 * @param {Record<string, number>} values of the call on the screen @param {() => void} changed
 */
export function optionControls(scheme, chosen, values, changed) {
    const level = (scheme.terms & TERM.input) !== 0 ? 2 : 1; // of the call that the page makes
    return scheme.options.filter(option => (option.levels & level) !== 0 && option.name !== "delta_min")
        .map(option => (option.kind === "choice" ? choice : slider)({ option, value: values[option.name], chosen, changed }));
}
