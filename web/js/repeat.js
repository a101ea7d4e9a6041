// SPDX-License-Identifier: Apache-2.0
// The lines that repeat what is on the screen elsewhere: shell, Python, C.

/** @typedef {import("./state.js").State} State */

const quote = (/** @type {string} */ text) => "'" + text.replace(/'/g, "'\\''") + "'";

/**
 * A command that prints the chosen pair; what its options cannot say is in the case file.
 * @param {State} state @param {string[]} tokens
 */
export function shellLine(state, tokens) {
    const pair = `--head ${state.head} --query ${state.query} --key ${state.key}`;
    const note = state.off === 0 ? "" : "; every term counts there";
    if (state.trained || state.scale !== null || state.windowLeft >= 0 || state.windowRight >= 0)
        return `locus explain view.safetensors ${pair} # «Case file» saves it${note}`;
    const parts = ["locus explain --scheme", state.scheme, "--tokens", quote(tokens.join(" ")), "--seed", String(state.seed), pair];
    if (state.causal) parts.push("--causal");
    for (const [name, value] of state.options) parts.push("--option", name + "=" + value);
    return parts.join(" ") + (note && " #" + note.slice(1));
}

/** @param {State} state */
export function pythonLines(state) {
    return [
        "import locus",
        'case = locus.case.load("view.safetensors")   # «case file» saves it',
        `print(locus.case.run(case).out[0, ${state.head}, ${state.query}])`,
    ].join("\n");
}

/** @param {State} state */
export function cLines(state) {
    return [
        "#include <locus/locus.h>",
        "",
        "locus_case *view;               /* «case file» saves it */",
        "locus_explainer *explainer;",
        `locus_case_load(&view, "view.safetensors", NULL, &error);`,
        "locus_explainer_new(&explainer, locus_case_level(view), locus_case_config(view),",
        "                    locus_case_inputs(view), &error);",
        `/* then locus_explain for head ${state.head}, query ${state.query}, key ${state.key} */`,
    ].join("\n");
}
