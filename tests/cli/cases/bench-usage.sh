# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try bench --scheme t6
try bench --scheme nothing-like-it
try bench --scheme t5,,shaw
try bench --scheme sinusoidal
# BENCH_LIST is 16, MOST_N 65,536, MOST_D 1,024, BENCH_ROUNDS 99, MOST_WIDTH 16,384, MOST_THREADS 256
for list in 0 x 64, ,64 64,65537 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17 99999999999999999999 ""; do
    try bench --n "$list"
done
try bench --d 1025
try bench --threads 0
try bench --threads 257
try bench --direction sideways
try bench --isa sse9
try bench --isa genric
try bench --rounds 0
try bench --rounds 100
try bench --decode --direction backward
try bench --decode --scheme none+dense
try bench --json --markdown
try bench --linear --scheme t5
try bench --operators --linear
try bench --linear --dropout 0.1
try bench --dropout 1
try bench --dropout 0
try bench --linear --d 16385
try bench --dtype f8
try bench --mask stripes
try bench --ragged --decode
try bench extra
LOCUS_ISA=sse9 try bench
