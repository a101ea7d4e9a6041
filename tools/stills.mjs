// SPDX-License-Identifier: Apache-2.0
// stills.mjs FOLDER LOCUS: the components of the page as pictures: the position switch from web/switch.json,
// FOLDER/switch.svg, off above on, for README; FOLDER/card.svg, 1200 x 630, for whoever links to the page; the product
// multiplied out, scheme by scheme, with what LOCUS finds in examples/lab, FOLDER/product.svg.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { SwitchNumbers, switchSentence, termText, percent } from "../web/js/switch_numbers.js";
import { switchPicture, label, escaped } from "../web/js/switch_picture.js";
import { PRODUCTS, TERM_NAMES, termClass, productPicture } from "../web/js/product.js";
import { boardText } from "../web/js/board.js";

const [folder, locus] = process.argv.slice(2);
const data = JSON.parse(readFileSync(new URL("../web/switch.json", import.meta.url), "utf8"));
const numbers = new SwitchNumbers(data), { head, query } = numbers.start();
const [light, dark] = [["#ffffff", "#1b1f24", "#57606a", "#d8dee4"], ["#14171b", "#e6e9ec", "#9aa4af", "#333a42"]];

/** The classes of the picture in the colours of a theme. */
function rules(theme) {
    const [paper, ink, faint, line] = theme === 0 ? light : dark;
    const fills = { back: paper, paper, ink, fill: ink, faint, hole: faint, zero: faint, line, free: "none", ...Object.fromEntries(data.terms.map((term, t) => ["t" + t, term.inks[theme]])) };
    return Object.entries(fills).map(([name, fill]) => `#still .${name}{fill:${fill}}`).join("") +
        `#still .arc{fill:none;stroke:${ink};stroke-linecap:round}#still .dot{fill:${ink};stroke:${paper};stroke-width:1.5}`;
}

const style = (both) => `<style>#still text{font-family:"Helvetica Neue",Helvetica,Arial,"DejaVu Sans",sans-serif}${rules(0)}` +
    (both ? `@media (prefers-color-scheme:dark){${rules(1)}}` : "") + "</style>";

/** "position  off (o  ) on" with what it does. */
function switchAt(x, y, on) {
    const knob = `<rect class="${on ? "fill" : "hole"}" x="${x + 104}" y="${y - 17}" width="44" height="24" rx="12"/>` +
        `<circle class="paper" cx="${x + (on ? 136 : 116)}" cy="${y - 5}" r="9"/>`;
    return label("ink", x, y, "position", { size: 20, anchor: "start", bold: true }) + knob +
        label("ink", x + 158, y, on ? "on" : "off", { size: 20, anchor: "start", bold: true });
}

function legendAt(x, y) {
    let at = x;
    return data.terms.map((term, t) => {
        const name = termText(term.name), here = at;
        at += 34 + name.length * 7.6;
        return `<rect class="t${t}" x="${here}" y="${y - 12}" width="14" height="14" rx="3"/>` + label("ink", here + 20, y, name, { anchor: "start" });
    }).join("");
}

/** Where the query looks with position off or on. */
function lookOf(on) {
    const { weight } = numbers.row(head, query, numbers.factors(on)), top = weight.indexOf(Math.max(...weight));
    const at = top === query ? "itself" : `the other “${data.tokens[top]}”`;
    return `“${numbers.queries[query]}” looks at ${at}: ${percent(weight[top])}`;
}

function panel(y, on, width) {
    const picture = switchPicture(numbers, { head, query, factors: numbers.factors(on) }, width, on ? "on" : "off");
    return { height: picture.height + 40, markup: switchAt(16, y + 24, on) + label("ink", 240, y + 24, lookOf(on), { size: 18, anchor: "start" }) +
        `<g transform="translate(10 ${y + 24})">${picture.markup.replace(/ (role|aria-[a-z]+)="[^"]*"/g, "")}</g>` };
}

const described = `${switchSentence(numbers, head, query)} ${data.title}, ${data.about}, head ${data.heads[head].head}.`;
const opening = (width, height) => `<svg xmlns="http://www.w3.org/2000/svg" id="still" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" ` +
    `aria-labelledby="still-title still-desc"><title id="still-title">One head of a trained model, position off and on</title><desc id="still-desc">${escaped(described)}</desc>`;

function pair() {
    const width = 1000, off = panel(34, 0, width - 20), on = panel(34 + off.height + 20, 1, width - 20), height = 34 + off.height + on.height + 56;
    return opening(width, height) + style(true) + `<rect class="back" width="${width}" height="${height}"/>` + legendAt(16, 22) + off.markup + on.markup +
        label("faint", 16, height - 12, `${data.title}, ${data.about}, head ${data.heads[head].head}. Arcs: weights; bars: the terms of each score, the dot is their sum.`, { size: 13, anchor: "start" }) + "</svg>\n";
}

function card() {
    const [width, height] = [1200, 630], on = panel(196, 1, width - 80);
    return opening(width, height) + style(false) + `<rect class="back" width="${width}" height="${height}"/><g transform="translate(30 0)">` +
        label("ink", 16, 66, "Where is a token?", { size: 46, anchor: "start", bold: true }) +
        label("faint", 16, 104, "Position in attention: every scheme, computed in the page. Locus", { size: 22, anchor: "start" }) +
        label("faint", 16, 160, `Position off: ${lookOf(0)}.`, { size: 22, anchor: "start" }) + on.markup + legendAt(16, 606) + "</g></svg>\n";
}

// ---- the product, and the way from words to the output ----

const colours = readFileSync(new URL("../src/plot/colour.c", import.meta.url), "utf8");
const inks = ["light", "dark"].map(theme => colours.match(new RegExp(`term_${theme}\\[PLOT_TERMS\\] = {([^}]*)}`))[1].match(/[0-9a-f]{6}/g));

function productRules(theme) {
    const [paper, ink, faint, line] = theme === 0 ? light : dark;
    const plain = { back: paper, ink, faint };
    return Object.entries(plain).map(([name, fill]) => `.${name}{fill:${fill}}`).join("") + TERM_NAMES.map((term, t) => `.${termClass(term)}{fill:#${inks[theme][t]}}`).join("") +
        `.quarter,.dropped{fill:none;stroke:${line}}.socket{fill:${paper};stroke:${faint}}.arc{fill:none;stroke:${faint}}`;
}

const productStyle = `<style>text{font-family:"Helvetica Neue",Helvetica,Arial,"DejaVu Sans",sans-serif}.formula{font-family:Georgia,"DejaVu Serif",serif;font-style:italic}.dropped{stroke-dasharray:4 4}` +
    `${productRules(0)}@media (prefers-color-scheme:dark){${productRules(1)}}</style>`;

/** Shares of the terms in the first layer of a model of examples/lab, mean of its heads, in per cent. */
function sharesFound(name) {
    if (["none", "sinusoidal"].includes(name)) return null;
    const said = JSON.parse(execFileSync(locus, ["explain", "examples/lab/" + name, "--text", boardText, "--json"], { encoding: "utf8", cwd: new URL("..", import.meta.url) }));
    const found = {};
    for (const { name, share: [first] } of said.terms) {
        const whole = name.includes("turn") ? "rotation" : name; // its bands
        found[whole] = (found[whole] ?? 0) + first.reduce((sum, share) => sum + share, 0) / first.length;
    }
    return found;
}

function products() {
    const names = Object.keys(PRODUCTS), columns = 3, wide = 320, gap = 20, high = 344, width = columns * wide + (columns + 1) * gap;
    const height = Math.ceil(names.length / columns) * high + 40;
    const parts = names.map((name, i) => {
        const x = gap + (i % columns) * (wide + gap), y = 10 + Math.floor(i / columns) * high;
        return label("ink", x, y + 18, PRODUCTS[name].title, { size: 16, anchor: "start", bold: true }) +
            `<g transform="translate(${x} ${y + 26})">${productPicture(name, 290, sharesFound(name)).markup}</g>`;
    });
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="product-title product-desc">` +
        `<title id="product-title">The product of query and key multiplied out, scheme by scheme</title><desc id="product-desc">${escaped(names.map(name => `${PRODUCTS[name].title}: ${PRODUCTS[name].note}`).join(" "))}</desc>` +
        productStyle + `<rect class="back" width="${width}" height="${height}"/>` + parts.join("") +
        label("faint", gap, height - 14, `Struck out: dropped. Areas: the share of each term in what scores vary by, first layer of the small trained models, “${boardText}”.`, { size: 13, anchor: "start" }) + "</svg>\n";
}

writeFileSync(folder + "/product.svg", products());
writeFileSync(folder + "/switch.svg", pair());
writeFileSync(folder + "/card.svg", card()); // a browser makes docs/card.png of it: tools/card.py
