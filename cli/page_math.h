/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAGE_MATH_H
#define CLI_PAGE_MATH_H

/* MathML in few letters: names, numbers, signs, and what holds them together. */

#define I(name) "<mi>" name "</mi>"
#define N(number) "<mn>" number "</mn>"
#define O(sign) "<mo>" sign "</mo>"
#define WORDS(text) "<mtext>" text "</mtext>"
#define ROW(inside) "<mrow>" inside "</mrow>"
#define SUB(base, below) "<msub>" ROW(base DEPTH) ROW(below) "</msub>"
#define SUP(base, above) "<msup>" base ROW(above) "</msup>"
#define BOTH(base, below, above) "<msubsup>" ROW(base DEPTH) ROW(below) ROW(above) "</msubsup>"
#define FRACTION(above, below) "<mfrac>" ROW(above) ROW(below) "</mfrac>"
#define ROOT(inside) "<msqrt>" inside "</msqrt>"
#define SUM(below) "<munder>" O("&sum;") ROW(below) "</munder>"
#define BRACKETS(inside) ROW("<mo stretchy=\"false\">(</mo>" inside "<mo stretchy=\"false\">)</mo>")
#define TABLE_ROW(name, row)                                                                       \
    ROW(I(name) "<mo stretchy=\"false\">[</mo>" row "<mo stretchy=\"false\">]</mo>")

/* Without a mathematical font a browser lowers an index by what hangs below the line: let
 * all letters hang alike. */
#define DEPTH "<mspace depth=\".22em\"></mspace>"

/* Lines under each other, aligned at their cells. */
#define LINES(lines) "<mtable displaystyle=\"true\">" lines "</mtable>"
#define TERMS(lines) "<mtable displaystyle=\"true\" class=\"terms\">" lines "</mtable>"
#define LINE(a, b) "<mtr><mtd>" a "</mtd><mtd>" b "</mtd></mtr>"
#define ABOVE(a, b)                                                                                \
    "<mtable displaystyle=\"true\"><mtr><mtd>" a "</mtd></mtr><mtr><mtd>" b "</mtd></mtr></mtable>"
#define LINE3(a, b, c) "<mtr><mtd>" a "</mtd><mtd>" b "</mtd><mtd>" c "</mtd></mtr>"

#define EQUALS O("=")
#define PLUS O("+")
#define MINUS O("&minus;")
#define NEGATIVE "<mo form=\"prefix\" lspace=\"0\" rspace=\"0\">&minus;</mo>"
#define DOT O("&sdot;")
#define TURNED "<mi mathvariant=\"normal\">T</mi>"

/* What occurs in every formula. */
#define SCORE SUB(I("s"), I("m") I("n"))
#define WEIGHT SUB(I("a"), I("m") I("n"))
#define OUT SUB(I("out"), I("m"))
#define Q SUB(I("q"), I("m"))
#define K SUB(I("k"), I("n"))
#define V SUB(I("v"), I("n"))
#define DISTANCE I("m") MINUS I("n")
#define WIDTH ROOT(I("D"))

#endif
