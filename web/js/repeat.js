// SPDX-License-Identifier: Apache-2.0
// The lines that repeat what is on the screen elsewhere: shell, Python, C.

/** @typedef {import("./state.js").State} State */

const quote = (/** @type {string} */ text) => "'" + text.replace(/'/g, "'\\''") + "'";

/** @param {State} state @param {string[]} tokens */
export function shellLine(state, tokens) {
    if (state.trained)
        return `locus explain view.safetensors --head ${state.head} --query ${state.query} --key ${state.key} # «Case file» saves it`;
    const parts = ["locus explain --scheme", state.scheme, "--tokens", quote(tokens.join(" ")), "--seed", String(state.seed),
        "--head", String(state.head), "--query", String(state.query), "--key", String(state.key)];
    if (state.causal) parts.push("--causal");
    for (const [name, value] of state.options) parts.push("--option", name + "=" + value);
    return parts.join(" ");
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
