/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/sheet.h"

void sheet_learned(lab_sheet *sheet) { (void)sheet; }
