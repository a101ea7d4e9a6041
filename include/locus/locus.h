/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LOCUS_H
#define LOCUS_LOCUS_H

/* Locus: position-aware attention in C. This header includes what users of attention
 * need; <locus/plot.h>, <locus/picture.h> and <locus/problem.h> stand apart. */

#include <locus/attention.h>
#include <locus/call.h>
#include <locus/case.h>
#include <locus/explain.h>
#include <locus/generate.h>
#include <locus/layer.h>
#include <locus/model.h>
#include <locus/oracle.h>
#include <locus/runtime.h>
#include <locus/scheme.h>
#include <locus/status.h>
#include <locus/tensor.h>
#include <locus/tensorfile.h>
#include <locus/text.h>
#include <locus/texts.h>

#endif
