# SPDX-License-Identifier: Apache-2.0
# In letters, without colour: this is no terminal.
"$LOCUS" plot t5
"$LOCUS" plot shaw --what distance --tokens "a rose is a rose" --option clip_left=2 --option clip_right=1
"$LOCUS" plot rope --what attention --causal --head 1 --tokens "one two three"
"$LOCUS" plot rope --what angles -n 24 --dim 16
