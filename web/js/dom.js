// SPDX-License-Identifier: Apache-2.0
// Small helpers to build the page's controls.

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] properties where the element has them, else attributes
 * @param {(Node | string)[]} children
 */
export function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes))
        if (key in made && key !== "list") /** @type {any} */ (made)[key] = value;
        else made.setAttribute(key, value);
    made.append(...children);
    return made;
}

let labels = 0;

/** A control with its label, and what it does below it. */
export function field(/** @type {string} */ text, /** @type {HTMLElement} */ control, /** @type {string} */ help = "") {
    control.id = "field-" + ++labels;
    const label = element("label", { htmlFor: control.id }, text);
    if (help === "") return element("div", { className: "field" }, label, control);
    const note = element("small", { id: control.id + "-help" }, help);
    control.setAttribute("aria-describedby", note.id);
    return element("div", { className: "field" }, label, control, note);
}

/** @param {[string, string][]} entries value and text @param {string} chosen */
export function select(entries, chosen) {
    const made = /** @type {HTMLSelectElement} */ (element("select"));
    for (const [value, text] of entries)
        made.append(element("option", { value, selected: value === chosen }, text));
    return made;
}

/** A file for the reader. */
export function download(/** @type {string} */ name, /** @type {BlobPart} */ data, /** @type {string} */ type) {
    const url = URL.createObjectURL(new Blob([data], { type }));
    const link = /** @type {HTMLAnchorElement} */ (element("a", { href: url, download: name }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** A number as a reader wants it: three digits behind the point, a real minus sign. */
export function number(/** @type {number} */ value, digits = 3) {
    if (value === -Infinity) return "−∞";
    const text = value.toFixed(digits);
    return (Number(text) === 0 ? (0).toFixed(digits) : text).replace("-", "−"); // no −0.0
}
