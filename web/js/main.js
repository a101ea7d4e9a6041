// SPDX-License-Identifier: Apache-2.0
// The page comes alive: unpack the library, then build what the text has left room for.

import { Locus, unpack } from "./module.js";
import { PositionSwitch } from "./switch.js";
import { Board, boardText } from "./board.js";
import { PRODUCTS } from "./product.js";
import { Explore } from "./explore.js";
import { charactersOf } from "./state.js";
import { startLessons } from "./lessons.js";
import { Findings } from "./found.js";
import { BucketTables } from "./tables.js";

const data = (/** @type {string} */ id) => JSON.parse(document.getElementById(id)?.textContent ?? "{}");

async function start() {
    const place = /** @type {HTMLElement} */ (document.getElementById("explore-place"));
    const hero = new PositionSwitch(/** @type {HTMLElement} */ (document.getElementById("switch-place")), data("switch"));
    const board = new Board(/** @type {HTMLElement} */ (document.getElementById("board-place")), data("inks"));
    try {
        const packed = document.getElementById("library")?.textContent ?? "";
        const locus = await Locus.start(await unpack(packed));
        locus.addTrained(await unpack(document.getElementById("trained")?.textContent ?? ""));
        board.measure(locus, 3, charactersOf(boardText, locus.trained.characters));
        place.replaceChildren();
        const explore = new Explore(locus, place);
        startLessons(locus, explore);
        new Findings(locus, /** @type {HTMLElement} */ (document.getElementById("found-place")), data("found"));
        new BucketTables(locus, /** @type {HTMLElement} */ (document.getElementById("tables-place")), data("tables"));
        document.documentElement.dataset.ready = locus.version();
        /** @type {any} */ (window).locusPage = { locus, explore, hero, board, products: PRODUCTS };
    } catch (problem) {
        place.textContent = "The library did not start in this browser (" + problem +
            "); the text and the pictures below do without it.";
        document.documentElement.dataset.ready = "failed";
    }
}

start();
