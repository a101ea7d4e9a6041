/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DIGEST_H
#define CLI_DIGEST_H

/* locus demo --digest: the bits of a fixed list of results as one number each, beside those that
 * cli/digests.inc stores. An exit code: CLI_DIFFERENT where one is another. */
int digest_run(int json);

#endif
