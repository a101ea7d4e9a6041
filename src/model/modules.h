/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_MODULES_H
#define LOCUS_MODEL_MODULES_H

/* How sentence-transformers makes one vector of a text: rows of the tokens are pooled, several ways
 * side by side, then go through steps: to length 1, or through a map. */

#include <locus/model.h>

#include "io/store.h"
#include "kernels/linear.h"

enum { MODULE_POOLINGS = 6, MODULE_STEPS = 8 };

typedef struct module_step {
    const char *folder; /* of a map's weights; NULL: rows of length 1 */
    int64_t inputs, outputs;
    int biased;
    locus_activation activation;
    const char *said; /* its activation, as inspect names it */
    size_t file;      /* of the checkpoint, once it is open  */
} module_step;

typedef struct model_modules {
    int there; /* 1: modules.json lists a pooling */
    locus_model_pooling poolings[MODULE_POOLINGS];
    int pooling_count;
    module_step steps[MODULE_STEPS];
    int step_count;
    int64_t width;      /* of the vector                             */
    int64_t cut;        /* tokens that a text is cut to; 0: it is not */
    const char *prompt; /* goes before every text; NULL: nothing     */
    const char *said;   /* all of it in words                        */
} model_modules;

/* What a folder says about them; without modules.json poolings[0], as it is, alone. `width`: of the last
 * states; `most`: tokens that the model takes, 0: no limit. Texts lie in `texts`. */
locus_status model_modules_read(model_modules *modules, const char *folder, int64_t width,
                                int64_t most, locus_arena *texts, locus_error *error);

#endif
