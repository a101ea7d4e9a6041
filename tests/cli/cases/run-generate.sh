# SPDX-License-Identifier: Apache-2.0
# The published story of stories260K, word for word; beams, sampling, lines of a file.
model=$GOLDEN/../../examples/stories260K
run() { "$LOCUS" run "$model" --threads 1 "$@"; }
run --ids 1 --max-length 201
run "Once upon a time" --max-length 24 --beams 4
run "The dog" --max-length 20 --min-length 20 --no-repeat-ngram 2
run "The dog" --max-length 20 --sample --seed 7 >one
run "The dog" --max-length 20 --sample --seed 7 >two
run "The dog" --max-length 20 --sample --seed 8 >three
cmp one two
cmp -s one three && echo "another seed draws the same"
run "The dog" --max-length 20 --sample --seed 7 --top-k 1
# The same bits alone and in a batch.
printf 'The dog\nOnce\n\nA big red ball was\n' >lines
for beams in 1 3; do
    run --file lines --json --beams $beams --max-length 30 >batch
    run --file lines --json --beams $beams --max-length 30 --tokens-per-batch 1 >alone
    cmp batch alone && wc -l <batch
done
run "The dog" --max-length 8 --json | sed 's/"score": .*/"score"}/'
for bad in "--max-length 2" "--length-penalty x" "--sample --beams 2" "--task fill" "--decoder-ids 1,x" "--temperature 0"; do
    # The words of an option are meant to fall apart.
    # shellcheck disable=SC2086
    run "The dog" $bad 2>&1 | sed "s|$model|MODEL|"
done
