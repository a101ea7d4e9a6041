// SPDX-License-Identifier: Apache-2.0
// Figures on a canvas while something moves: a map of numbers, stacked bars, curves, clocks.
// Colours are those of the library's own pictures.

const INK = { paper: 0, text: 1, faint: 2, grid: 3, hidden: 4, series: 5, sequential: 13, diverging: 77 };

/** @typedef {import("./module.js").Locus} Locus */
/** @typedef {{context: CanvasRenderingContext2D, width: number, height: number, palette: Palette}} Surface */

/** The inks of one theme. */
export class Palette {
    constructor(/** @type {Locus} */ locus, /** @type {boolean} */ dark) {
        const run = (/** @type {number} */ first, /** @type {number} */ count) =>
            Array.from({ length: count }, (_, i) => locus.ink(first + i, dark));
        this.paper = locus.ink(INK.paper, dark);
        this.text = locus.ink(INK.text, dark);
        this.faint = locus.ink(INK.faint, dark);
        this.grid = locus.ink(INK.grid, dark);
        this.hidden = locus.ink(INK.hidden, dark);
        this.series = run(INK.series, 8);
        this.sequential = run(INK.sequential, 64);
        this.diverging = run(INK.diverging, 65);
        /** the colour of a term, by the ink that the library has for it */
        this.term = (/** @type {number} */ ink) => locus.ink(ink, dark);
    }
}

/** A canvas of `height` CSS pixels, as wide as its place, cleared. */
export function surface(/** @type {HTMLCanvasElement} */ canvas, /** @type {number} */ height,
    /** @type {Palette} */ palette) {
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    const width = canvas.clientWidth || 300;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    return { context, width, height, palette };
}

/** Text cut to a width. */
function fit(/** @type {CanvasRenderingContext2D} */ context, /** @type {string} */ text, /** @type {number} */ width) {
    if (context.measureText(text).width <= width) return text;
    const letters = [...text];
    while (letters.length > 1 && context.measureText(letters.join("") + "…").width > width) letters.pop();
    return letters.join("") + "…";
}

/** Limits of the finite values; symmetric around 0 where there are both signs. */
export function limits(/** @type {ArrayLike<number>} */ values) {
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < values.length; i++) {
        if (!Number.isFinite(values[i])) continue;
        low = Math.min(low, values[i]);
        high = Math.max(high, values[i]);
    }
    if (low > high) low = high = 0;
    const both = low < 0 && high > 0;
    const most = Math.max(-low, high);
    return both ? { low: -most, high: most, both } : { low, high, both };
}

/** The colour of a value between limits. */
export function colour(/** @type {Palette} */ palette, /** @type {number} */ value,
    /** @type {{low: number, high: number, both: boolean}} */ { low, high, both }) {
    if (!Number.isFinite(value)) return palette.hidden;
    const ramp = both ? palette.diverging : palette.sequential;
    const share = high > low ? (value - low) / (high - low) : both ? 0.5 : 0;
    return ramp[Math.min(ramp.length - 1, Math.max(0, Math.round(share * (ramp.length - 1))))];
}

const BAR = 58; // room right of a map for the bar of its colours

/** Where the cells of a square map lie; short names need no turn and less room. */
export function mapLayout(/** @type {number} */ width, /** @type {string[]} */ tokens) {
    const longest = Math.max(...tokens.map(token => [...token].length)), upright = longest <= 3, top = upright ? 44 : 80;
    const left = Math.min(76, width * 0.22, Math.max(68, 12 + 8 * longest));
    const cell = Math.max(3, Math.min(34, Math.floor((width - left - BAR) / tokens.length)));
    return { left, top, cell, upright, height: top + cell * tokens.length + 8 };
}

/**
 * A map of [count][count] numbers, queries down, keys across; NaN: hidden. Names of the marked row and column stand at any length.
 * @param {Surface} s @param {{left: number, top: number, cell: number}} layout
 * @param {{values: ArrayLike<number>, count: number, tokens: string[], query: number, key: number, text: (value: number) => string,
 *   range?: {low: number, high: number, both: boolean}, whole?: boolean}} map `range`: one scale for several maps; `whole`: only whole numbers
 */
export function drawMap(s, layout, map) {
    const { context, palette } = s, { left, top, cell } = layout, range = map.range ?? limits(map.values);
    for (let m = 0; m < map.count; m++)
        for (let n = 0; n < map.count; n++) {
            const value = map.values[m * map.count + n], x = left + n * cell, y = top + m * cell;
            if (Number.isFinite(value)) {
                context.fillStyle = colour(palette, value, range);
                context.fillRect(x, y, cell, cell);
            } else drawHidden(s, x, y, cell);
        }
    context.textBaseline = "middle";
    if (cell >= 20) drawNumbers(s, layout, map, range);
    drawNames(s, layout, map);
    drawScale(s, layout, map.count * cell, range, map.whole === true);
    // Two lines, so that the mark is seen on any colour.
    for (const [ink, wide] of /** @type {[string, number][]} */ ([[palette.paper, 4], [palette.text, 2]])) {
        context.strokeStyle = ink;
        context.lineWidth = wide / 2;
        context.strokeRect(left - 0.5, top + map.query * cell - 0.5, cell * map.count + 1, cell + 1);
        context.lineWidth = wide;
        context.strokeRect(left + map.key * cell, top + map.query * cell, cell, cell);
    }
}

/** A pair that is hidden: paper with a line through it, which no value looks like. */
function drawHidden(/** @type {Surface} */ { context, palette }, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ cell) {
    context.fillStyle = palette.hidden;
    if (cell < 8) {
        context.fillRect(x, y, cell, cell);
        return;
    }
    context.strokeStyle = palette.grid;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y + cell);
    context.lineTo(x + cell, y);
    context.stroke();
}

/** Relative luminance of WCAG. */
function luminance(/** @type {string} */ hex) {
    const [r, g, b] = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever can be read better on a colour. */
export const inkOn = (/** @type {string} */ hex) => (luminance(hex) > 0.18 ? "#000000" : "#ffffff");

/** @param {Surface} s @param {any} layout @param {any} map @param {any} range */
function drawNumbers(s, { left, top, cell }, map, range) {
    const { context, palette } = s;
    context.font = Math.max(10, Math.min(11, cell * 0.4)) + "px system-ui, sans-serif";
    context.textAlign = "center";
    const texts = Array.from(map.values, (/** @type {number} */ value) => (Number.isFinite(value) ? map.text(value) : ""));
    if (texts.every((/** @type {string} */ text) => context.measureText(text).width < cell)) // all of them or none
        texts.forEach((/** @type {string} */ text, /** @type {number} */ i) => {
            context.fillStyle = inkOn(colour(palette, map.values[i], range));
            context.fillText(text, left + (i % map.count + 0.5) * cell, top + (Math.floor(i / map.count) + 0.5) * cell);
        });
    context.font = "12px system-ui, sans-serif";
}

/**
 * The names that have room, those of the marked pair before all others; what runs down and across.
 * @param {Surface} s @param {any} layout @param {any} map
 */
function drawNames({ context, palette }, { left, top, cell, upright }, map) {
    const every = Math.ceil(14 / cell), near = (/** @type {number} */ i, /** @type {number} */ marked) => i !== marked && Math.abs(i - marked) * cell < 14;
    map.tokens.forEach((/** @type {string} */ token, /** @type {number} */ i) => {
        if (i === map.query || i % every === 0 && !near(i, map.query)) {
            context.font = (i === map.query ? "bold " : "") + "12px system-ui, sans-serif";
            context.fillStyle = i === map.query ? palette.text : palette.faint;
            context.textAlign = "right";
            context.fillText(fit(context, token, left - 8), left - 5, top + (i + 0.5) * cell);
        }
        if (i !== map.key && (i % every !== 0 || near(i, map.key))) return;
        context.font = (i === map.key ? "bold " : "") + "12px system-ui, sans-serif";
        context.fillStyle = i === map.key ? palette.text : palette.faint;
        context.save();
        context.translate(left + (i + 0.5) * cell, top - 6);
        if (!upright) context.rotate(-Math.PI / 3);
        context.textAlign = upright ? "center" : "left";
        context.fillText(upright ? token : fit(context, token, 52), 0, upright ? -4 : 0);
        context.restore();
    });
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = palette.faint;
    context.textAlign = "left";
    context.fillText("key n →", left, 8);
    context.textAlign = "right";
    context.fillText("query m ↓", left - 5, top - 8);
}

/**
 * The bar of the colours, with the numbers that they stand for.
 * @param {Surface} s @param {any} layout @param {number} side @param {any} range @param {boolean} whole
 */
function drawScale({ context, palette, width }, { left, top }, side, range, whole) {
    const x = Math.min(left + side + 10, width - BAR + 10), high = Math.max(60, side), steps = 64;
    for (let i = 0; i < steps; i++) {
        context.fillStyle = colour(palette, range.low + (i + 0.5) / steps * (range.high - range.low), range);
        context.fillRect(x, top + high - (i + 1) * high / steps, 10, high / steps + 0.5);
    }
    context.fillStyle = palette.faint;
    context.textAlign = "left";
    const marks = range.high > range.low ? ticks(range.low, range.high, whole) : [range.low];
    for (const mark of marks) {
        const y = range.high > range.low ? top + (range.high - mark) / (range.high - range.low) * high : top + high / 2;
        context.fillRect(x + 10, y - 0.5, 3, 1);
        context.fillText(short(mark), x + 15, Math.min(top + high - 5, Math.max(top + 6, y)));
    }
}

const short = (/** @type {number} */ value) => String(+value.toPrecision(3)).replace("-", "−");

/** Marks of an axis, three at least where there is room for them: steps of 1, 2, 2.5 or 5 times a power of ten; `whole`: whole numbers. */
export function ticks(/** @type {number} */ low, /** @type {number} */ high, whole = false) {
    const rough = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(rough));
    const enough = (/** @type {number} */ step) => Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) >= 2;
    const steps = [10, 5, 2.5, 2, 1].map(f => f * power).filter(f => !whole || Number.isInteger(f));
    const step = steps.find(enough) ?? (whole ? 1 : power / 2);
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) out.push(Number((i * step).toPrecision(6)));
    return out;
}

/** A vertical axis with lines behind the figure; gives the function from value to y. */
function verticalAxis(/** @type {Surface} */ s, /** @type {number} */ low, /** @type {number} */ high,
    /** @type {number} */ left, /** @type {number} */ bottom) {
    const { context, palette, width, height } = s;
    const y = (/** @type {number} */ value) => 8 + (high - value) / (high - low || 1) * (height - 8 - bottom);
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of ticks(low, high)) {
        context.fillStyle = tick === 0 ? palette.faint : palette.grid;
        context.fillRect(left, y(tick), width - left - 4, 1);
        context.fillStyle = palette.faint;
        context.fillText(short(tick), left - 5, y(tick));
    }
    return y;
}

/**
 * Bars of terms stacked over the keys; negative parts hang below zero. The dot is their sum.
 * @param {Surface} s
 * @param {{terms: {values: ArrayLike<number>, ink: number}[], sums: ArrayLike<number>, tokens: string[], key: number}} bars
 */
export function drawBars(s, bars) {
    const { context, palette, width, height } = s, count = bars.tokens.length;
    let low = 0, high = 0;
    for (let n = 0; n < count; n++) {
        let up = 0, down = 0;
        for (const term of bars.terms) term.values[n] > 0 ? up += term.values[n] : down += term.values[n];
        low = Math.min(low, down);
        high = Math.max(high, up);
    }
    if (low === high) high = 1;
    const left = 42, bottom = 46, y = verticalAxis(s, low, high, left, bottom);
    const step = (width - left - 4) / count;
    for (let n = 0; n < count; n++) {
        const x = left + n * step + step * 0.14, wide = step * 0.72;
        if (n === bars.key) {
            context.fillStyle = palette.hidden;
            context.fillRect(left + n * step, 8, step, height - 8 - bottom);
        }
        let up = 0, down = 0;
        for (const term of bars.terms) {
            const value = term.values[n], from = value > 0 ? up : down;
            context.fillStyle = palette.term(term.ink);
            context.fillRect(x, Math.min(y(from), y(from + value)), wide, Math.abs(y(from) - y(from + value)));
            value > 0 ? up += value : down += value;
        }
        if (!Number.isFinite(bars.sums[n])) continue;
        context.fillStyle = palette.text;
        context.beginPath();
        context.arc(x + wide / 2, y(bars.sums[n]), Math.min(4, wide / 3), 0, 2 * Math.PI);
        context.fill();
    }
    if (step >= 9) drawBelow(s, bars.tokens, left, step, height - bottom + 8);
}

function drawBelow(/** @type {Surface} */ { context, palette }, /** @type {string[]} */ tokens,
    /** @type {number} */ left, /** @type {number} */ step, /** @type {number} */ top) {
    context.fillStyle = palette.text;
    context.textAlign = "right";
    tokens.forEach((token, n) => {
        context.save();
        context.translate(left + (n + 0.6) * step, top);
        context.rotate(-Math.PI / 4);
        context.fillText(fit(context, token, 50), 0, 0);
        context.restore();
    });
}

/**
 * Curves over x = first, first + 1, ..., or over the places `at`; `steps`: a staircase. The mark is a vertical line.
 * @param {Surface} s
 * @param {{first: number, curves: {values: ArrayLike<number>, series?: number, ink?: number, steps: boolean, dashed?: boolean, faint?: boolean}[],
 *   mark: number, label: string, at?: number[]}} figure
 */
export function drawCurves(s, figure) {
    const { context, palette, width, height } = s, left = 46, bottom = 34;
    const count = figure.curves[0].values.length;
    const all = figure.curves.map(curve => limits(Array.from(curve.values)));
    let low = Math.min(...all.map(l => l.low)), high = Math.max(...all.map(l => l.high));
    if (low === high) [low, high] = [low - 1, high + 1];
    const y = verticalAxis(s, low, high, left, bottom);
    const start = figure.at?.[0] ?? figure.first - 0.5, end = figure.at?.[count - 1] ?? figure.first + count - 0.5;
    const x = (/** @type {number} */ r) => left + 8 + (r - start) / (end - start || 1) * (width - left - 24);
    context.textAlign = "center";
    context.fillStyle = palette.faint;
    let right = -Infinity; // where the last number below the axis ended
    for (const tick of figure.at ?? ticks(figure.first, figure.first + count - 1, true)) {
        const text = short(tick), half = context.measureText(text).width / 2;
        if (x(tick) - half < right + 4) continue;
        context.fillText(text, x(tick), height - bottom + 12);
        right = x(tick) + half;
    }
    context.fillText(fit(context, figure.label, width - left), (left + width) / 2, height - 7);
    context.fillStyle = palette.faint;
    context.fillRect(x(figure.mark) - 0.5, 8, 1, height - 8 - bottom);
    for (const curve of figure.curves) {
        context.strokeStyle = curve.faint ? palette.faint : curve.ink !== undefined ? palette.term(curve.ink) : palette.series[(curve.series ?? 0) % 8];
        context.lineWidth = curve.faint ? 0.75 : 2;
        context.setLineDash(curve.dashed ? [5, 3] : []);
        context.beginPath();
        let open = false;
        for (let i = 0; i < count; i++) {
            const value = curve.values[i], at = x(figure.at?.[i] ?? figure.first + i), half = x(1) - x(0.5);
            if (!Number.isFinite(value)) { open = false; continue; }
            if (curve.steps) {
                open ? context.lineTo(at - half, y(value)) : context.moveTo(at - half, y(value));
                context.lineTo(at + half, y(value));
            } else open ? context.lineTo(at, y(value)) : context.moveTo(at, y(value));
            open = true;
        }
        context.stroke();
        context.setLineDash([]);
    }
}

/**
 * A clock for each pair of channels: one hand for the query, one for the key. What counts is
 * the angle between them.
 * @param {Surface} s @param {{frequency: number[], query: number, key: number}} clocks
 */
export function drawClocks(s, { frequency, query, key }) {
    const { context, palette, width, height } = s, count = frequency.length;
    const radius = Math.min(width / count / 2 - 6, height / 2 - 32);
    context.font = "bold 12px system-ui, sans-serif";
    context.textAlign = "left";
    ["query", "key"].forEach((name, series) => {
        context.fillStyle = palette.series[series];
        context.fillText(name, 4 + 52 * series, 10);
    });
    context.font = "12px system-ui, sans-serif";
    frequency.forEach((f, t) => {
        const x = (t + 0.5) * width / count, y = radius + 24;
        context.strokeStyle = palette.grid;
        context.lineWidth = 1.5;
        context.beginPath();
        context.arc(x, y, radius, 0, 2 * Math.PI);
        context.stroke();
        context.fillStyle = palette.hidden;
        context.beginPath();
        context.moveTo(x, y);
        context.arc(x, y, radius * 0.55, -query * f, -key * f, (query - key) * f > 0 ? false : true);
        context.fill();
        [[query, 0], [key, 1]].forEach(([position, series]) => {
            context.strokeStyle = palette.series[series];
            context.lineWidth = 2.5;
            context.beginPath();
            context.moveTo(x, y);
            context.lineTo(x + radius * Math.cos(position * f), y - radius * Math.sin(position * f));
            context.stroke();
        });
        context.fillStyle = palette.faint;
        context.textAlign = "center";
        context.fillText(f >= 0.01 ? f.toFixed(3) : f.toExponential(0), x, 2 * radius + 38);
    });
}
