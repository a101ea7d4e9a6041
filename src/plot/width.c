/* SPDX-License-Identifier: Apache-2.0 */
/* Widths of letters, in thousandths of their size: those of DejaVu Sans, the widest of the
 * fonts that a viewer is likely to take for "sans-serif", and a little more for letters that
 * a screen moves to whole pixels. A layout that holds with these holds with Helvetica, Arial
 * or Liberation. */
#include <locus/plot.h>

#include "plot/text.h"

static const uint16_t ascii[95] = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838,
};

static double width_of(const unsigned char *bytes, size_t count)
{
    if (count == 1) return ascii[bytes[0] - 32] / 1000.0;
    if (bytes[0] == 0xCC || (bytes[0] == 0xCD && bytes[1] < 0xB0)) return 0.0; /* accents */
    /* Greek, Cyrillic and signs are below 0.84; ideographs and pictures fill a square. */
    return count == 2 ? 0.75 : bytes[0] == 0xE2 ? 0.838 : count == 3 ? 1.0 : 1.2;
}

double locus_text_width(const char *text)
{
    unsigned char bytes[4];
    size_t count;
    double width = 0.0;
    while (text != NULL && (count = plot_next(&text, bytes)) > 0) width += width_of(bytes, count);
    return 1.03 * width;
}
