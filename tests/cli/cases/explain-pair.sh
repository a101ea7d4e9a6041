# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# One score as an equation.
try explain --scheme deberta --tokens "the cat sat" --query 2 --key 0
try explain --scheme learned --tokens "the cat sat" -q 0 -k 2
try explain --scheme t5 --length 9 --causal -q 1 -k 2
try explain --scheme shaw --option clip_left=1 --option clip_right=0 -n 5 -q 4 -k 0
