/* SPDX-License-Identifier: Apache-2.0 */
/* In place of everything else, where the program is built without an HTTP library. */
#include "cli/cli.h"
#include "serve/serve.h"

const char *serve_library(void) { return NULL; }

int serve_run(const serve_options *options)
{
    (void)options;
    return cli_complain("serve", CLI_RESOURCES,
                        "this program was built without libmicrohttpd: install libmicrohttpd-dev "
                        "and build again");
}
