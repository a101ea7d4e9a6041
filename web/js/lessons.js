// SPDX-License-Identifier: Apache-2.0
// Learn: every lesson gets a live figure and one question, which the reader answers by moving
// something. The text and the still pictures are those of `locus demo`.

import { element } from "./dom.js";
import { Live } from "./live.js";

/**
 * trained: on letters, with the numbers of a trained layer; options: what they are at first.
 * figure: which map, bars, curve or clocks; controls: options of the scheme that may be moved, "words", "head",
 * "terms"; solved: has the reader seen it? `seen` are the pairs visited so far, the present one last.
 * @typedef {{id: string, scheme: string, figure: string, controls: string[], question: string, answer: string,
 *   solved: (live: Live) => boolean, causal?: boolean, trained?: boolean, options?: Record<string, string>}} Lesson
 */

const distanceOf = (/** @type {[number, number]} */ pair) => pair[0] - pair[1];

/** Two pairs were visited that lie equally far apart, at different places. */
function sameDistanceTwice(/** @type {Live} */ live) {
    return live.seen.some((a, i) => live.seen.slice(i + 1).some(b => a[0] !== b[0] && distanceOf(a) === distanceOf(b)));
}

/** Both places of a word that occurs twice were queries. */
function bothPlaces(/** @type {Live} */ live) {
    return live.seen.some(a => live.seen.some(b => a[0] !== b[0] && live.tokens[a[0]] === live.tokens[b[0]]));
}

/** @type {Lesson[]} */
export const LESSONS = [
    {
        id: "why", scheme: "none", figure: "weight", controls: ["words"],
        question: "Move a word to another place. Do its weights change, or do they only move along?",
        answer: "They only move along: the same numbers, in another order. This layer cannot tell the two sentences apart.",
        solved: live => live.moved,
    },
    {
        id: "absolute", scheme: "learned", figure: "weight", controls: [], trained: true,
        question: "“t” stands at three places. Choose two of its rows: do they look for the same?",
        answer: "No: each place has a row of its own, so the same letter asks differently at each of them.",
        solved: bothPlaces,
    },
    {
        id: "sinusoid", scheme: "sinusoidal", figure: "similarity", controls: ["table"],
        question: "Choose three cells along a diagonal. What do they share?",
        answer: "Their product p_m · p_n: it depends on m − n alone, although each p depends on its own place.",
        solved: live => live.seen.filter(pair => distanceOf(pair) === distanceOf(live.seen[live.seen.length - 1])).length >= 3,
    },
    {
        id: "distance", scheme: "shaw", figure: "distance", controls: ["clip_left", "clip_right"], options: { clip_left: "3", clip_right: "3" },
        question: "Which r do these two cells share? Choose a second cell with the distance of the marked one.",
        answer: "Every cell of a diagonal has the same m − n, so one row of the table serves them all; beyond the clip, all farther ones too.",
        solved: sameDistanceTwice,
    },
    {
        id: "shaw", scheme: "shaw", figure: "bars", controls: ["clip_left", "clip_right", "terms"],
        question: "Set a clip to 2: from which distance on does the position term depend on the query alone?",
        answer: "From 2 on: all farther keys of that side share one row, so their term is one number per query.",
        solved: live => live.options.get("clip_left") === "2" || live.options.get("clip_right") === "2",
    },
    {
        id: "transformer-xl", scheme: "transformer_xl", figure: "bars", controls: ["terms"], trained: true,
        question: "Switch off the two terms that contain the query. What is left, and does it change when you choose another query?",
        answer: "u · k and v · r: a taste for certain keys and for certain distances, whoever asks. u · k is the same for every query.",
        solved: live => live.off !== 0 && live.seen.length > 1,
    },
    {
        id: "t5", scheme: "t5", figure: "rule", controls: ["buckets", "max_distance"],
        question: "Take fewer buckets, until the distances 5 and 6 fall into one.",
        answer: "Near distances keep buckets of their own; far ones share them, the more the farther they are.",
        solved: live => live.biasRow(5) === live.biasRow(6),
    },
    {
        id: "tupe", scheme: "tupe", figure: "bars", controls: ["terms"], trained: true,
        question: "Switch the content off. Does what is left know which words there are?",
        answer: "No: the position part is the same for every sentence of this length. Content and position do not mix.",
        solved: live => (live.off & 1) !== 0,
    },
    {
        id: "deberta", scheme: "deberta", figure: "bars", controls: ["terms"], trained: true,
        question: "Leave the content → position term alone on, then the position → content one. Which of them knows the word of the query?",
        answer: "content → position: it multiplies the query with a row for the distance. The other one multiplies the key with it.",
        solved: live => [1 | 4, 1 | 2].includes(live.off),
    },
    {
        id: "alibi", scheme: "alibi", figure: "curve", controls: ["head"], causal: true,
        question: "Which head looks farthest back?",
        answer: "The last one: the slopes fall by a constant factor from head to head, so it subtracts least.",
        solved: live => live.head === 3,
    },
    {
        id: "kerple", scheme: "kerple", figure: "curve", controls: ["form", "head"], causal: true,
        question: "Switch from log to power. Which of the two falls faster far away?",
        answer: "The power: the logarithm bends and stays gentle, so far keys keep a chance.",
        solved: live => live.options.get("form") === "power",
    },
    {
        id: "rope", scheme: "rope", figure: "clocks", controls: ["base"],
        question: "Move query and key by the same number of places. Which angle stays?",
        answer: "The one between the hands, on every clock: the product of the turned pair depends on m − n alone.",
        solved: sameDistanceTwice,
    },
    {
        id: "xpos", scheme: "xpos", figure: "weight", controls: ["scale_base"], causal: true,
        question: "Make scale_base small. What happens to keys that are far away?",
        answer: "Their products fade: beside the turn, each pair shrinks with the distance, fast pairs most.",
        solved: live => Number(live.options.get("scale_base") ?? 512) < 100,
    },
];

/** @param {import("./module.js").Locus} locus @param {import("./explore.js").Explore} explore */
export function startLessons(locus, explore) {
    for (const lesson of LESSONS) {
        const still = document.querySelector(`#${lesson.id} > figure`);
        if (still === null) continue;
        const place = element("div", { className: "live", id: "live-" + lesson.id });
        still.after(place);
        new Live(locus, explore, lesson, place);
    }
}
