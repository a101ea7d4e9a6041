# SPDX-License-Identifier: Apache-2.0
# A text gives the same bits alone and in any batch, whatever its neighbours are. The lines come to
# more tokens than TOKENS_PER_BATCH, 2048, and cross it and FIRST_ROOM, 256, by one both ways.
. "$SUPPORT/lib.sh"
model bert max_position_embeddings=1100
python3 - <<'END'
lines = []
for tokens in (255, 256, 257, 511, 512, 513, 3, 2, 1022, 1023, 1024, 1025, 2):
    lines.append("a " * (tokens - 2))  # with [CLS] and [SEP]
for tokens in range(2, 20):
    lines += [("the work " * tokens)[: 4 * tokens], ""]
lines += ["of"] * 700
open("lines", "w").write("\n".join(lines))
END
"$LOCUS" run bert --file lines --json --tokens-per-batch 1 --threads 1 >alone
wc -l <alone
for size in 255 256 257 511 512 513 1025 2048 1000000; do
    "$LOCUS" run bert --file lines --json --tokens-per-batch $size --threads 3 >batch
    cmp alone batch || echo "other bits in batches of $size"
done
"$LOCUS" run bert --json --file - <lines | cmp - alone || echo "other bits from a pipe"
# Results of the lines before a bad one come first, and it is named.
printf 'a\nof\n%s\nthe\n' "$(head -c 4000 /dev/zero | tr '\0' '.')" >bad
rounded run bert --file bad --json
rounded run bert --file nowhere
