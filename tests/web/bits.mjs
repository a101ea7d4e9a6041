// SPDX-License-Identifier: Apache-2.0
// bits.mjs MODULE NATIVE: the module has no imports, and its results have the bits of the portable
// kernels of this machine, scheme by scheme. Prints one line per case: its name and, behind a tab, what
// is wrong.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { Locus } from "../../web/js/module.js";

const [, , path, native] = process.argv;
const report = (name, trouble) => console.log(name + "\t" + trouble);

const bytes = readFileSync(path);
const imports = WebAssembly.Module.imports(new WebAssembly.Module(bytes));
report("imports", imports.map(i => i.name).join(" "));

const locus = await Locus.start(bytes);
for (const scheme of locus.schemes)
    for (const length of [1, 10, 64])
        for (const causal of [false, true]) {
            const name = `bits/${scheme.name}/${length}/${causal ? "causal" : "full"}`;
            try {
                const tokens = Array.from({ length }, (_, i) => "w" + i % 7);
                locus.call(0, { scheme: scheme.name, options: [], tokens, causal, windowLeft: -1, windowRight: -1, scale: null, seed: 5, weights: "" });
                const got = locus.forward(0), words = new Uint32Array(got.buffer, got.byteOffset, got.length);
                const want = execFileSync(native, [scheme.name, String(length), causal ? "1" : "0"], { encoding: "utf8" }).trim().split("\n");
                const wrong = want.filter((word, i) => parseInt(word, 16) !== words[i]).length;
                report(name, want.length !== words.length ? `${words.length} numbers, expected ${want.length}`
                    : wrong > 0 ? `${wrong} of ${want.length} numbers differ` : "");
            } catch (problem) {
                report(name, String(problem.message).split("\n")[0]);
            }
        }
