/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* One per cmd_*.c; main.c lists them in the order of the help. */

#include "cli.h"

extern const cli_command cmd_attend;
extern const cli_command cmd_schemes;
extern const cli_command cmd_plot;
extern const cli_command cmd_explain;
extern const cli_command cmd_inspect;
extern const cli_command cmd_run;
extern const cli_command cmd_compare;
extern const cli_command cmd_convert;
extern const cli_command cmd_tokenize;
extern const cli_command cmd_serve;
extern const cli_command cmd_demo;
extern const cli_command cmd_bench;
extern const cli_command cmd_lab;
extern const cli_command cmd_help;

#endif
