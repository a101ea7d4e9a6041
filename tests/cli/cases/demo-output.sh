# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# A page in a folder that did not exist.
quiet demo --quick -o some/folder/
head -n 1 some/folder/index.html
tail -n 1 some/folder/index.html
ls some some/folder
# Folders that cannot be: said before anything is computed.
echo file >file
quiet demo -o file
quiet demo -o file/folder
quiet demo -o ""
quiet demo -o /proc/locus
# A page that cannot take its name: nothing is left behind.
mkdir -p taken/index.html
quiet demo --quick -o taken
ls taken
