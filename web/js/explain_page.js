// SPDX-License-Identifier: Apache-2.0
// The page that `locus explain MODEL --text TEXT -o page.html` writes: the position switch on the numbers of that call.

import { PositionSwitch } from "./switch.js";

const numbersOfPage = JSON.parse(document.getElementById("numbers")?.textContent ?? "{}");
const placeOfSwitch = /** @type {HTMLElement} */ (document.getElementById("switch-place"));
/** @type {any} */ (window).locusSwitch = new PositionSwitch(placeOfSwitch, numbersOfPage);
document.documentElement.dataset.ready = "switch";
