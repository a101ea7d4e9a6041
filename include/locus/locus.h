/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LOCUS_H
#define LOCUS_LOCUS_H

/* Locus: position-aware attention in C. This header includes all the others. */

#include <locus/attention.h>
#include <locus/case.h>
#include <locus/explain.h>
#include <locus/layer.h>
#include <locus/oracle.h>
#include <locus/picture.h>
#include <locus/plot.h>
#include <locus/problem.h>
#include <locus/runtime.h>
#include <locus/scheme.h>
#include <locus/status.h>
#include <locus/tensor.h>
#include <locus/tensorfile.h>

#endif
