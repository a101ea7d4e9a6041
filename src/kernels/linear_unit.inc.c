/* SPDX-License-Identifier: Apache-2.0 */
/* The linear maps of one instruction set, whose vocabulary was included before: LINEAR_NAME is
 * the name of their table. */

#include <math.h>
#include <string.h>

#include "core/compiler.h"
#include "kernels/kernels.h"

#include "kernels/exp.inc.c"
#include "kernels/tails.inc.c"

#include "kernels/activation.inc.c"
#include "kernels/linear.inc.c"
