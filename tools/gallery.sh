#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gallery.sh LOCUS FOLDER: draw every picture of the gallery into FOLDER, with the page that
# shows them. `make gallery` does it for docs/gallery; tests/docs compares.
set -eu
locus=$1
folder=$2
mkdir -p "$folder"

list() { # NAME | arguments of locus plot | what to look at
    cat <<'END'
sinusoidal|sinusoidal|Fast features on the left of each half, slow ones on the right; near positions have similar encodings, whatever their number.
sinusoidal-layouts|sinusoidal --what layouts|Three tables go by the same name. They hold the same waves in other columns, or other waves: models do not exchange them.
learned|learned|A learned table starts as noise: no position is near another before training says so.
shaw|shaw|Beyond the clip all distances share a row.
relative-key|relative_key|One row per distance, and no clip: the table bounds the length.
relative-key-query|relative_key_query --what terms|The same row meets the query and the key.
transformer-xl|transformer_xl|The four terms (a) to (d): (a) and (b) depend on the query, (c) is constant along columns, (d) along diagonals.
t5|t5|Near distances have buckets of their own, far ones share; each head learns one number per bucket. One small table serves all three.
t5-causal|t5 --causal --what rows,bias|Without keys after the query, all buckets serve the past.
tupe|tupe|Positions meet positions through projections of their own; the [CLS] reset frees the first row and column from them.
deberta|deberta|Log buckets: exact near zero, then wider; the same row serves both directions.
deberta-terms|deberta --what terms|Content to content, content to position, position to content, and the sum that softmax sees.
alibi|alibi --what bias --heads 8|A line per head, steeper and steeper.
kerple|kerple --what bias|The same idea with a logarithm: far distances cost less.
rope|rope|Each pair of columns turns at its own speed; the mean score falls with the distance, in waves.
xpos|xpos|RoPE with a decay per pair, stronger where the rotation is faster.
none-attention|none --what attention|Without positions, equal words get equal rows and columns.
sinusoidal-attention|sinusoidal --what attention|The two rows of "the" differ now: positions entered with the input.
alibi-attention|alibi --what attention --heads 4|Steep heads look at their neighbours only.
rope-attention|rope --what attention --causal|Grey pairs are hidden: the query sees no key after it.
variants|t5 --what variants|One head with all pairs, causal, and with a window.
function-of-distance|distance|Any function of the distance, as numbers that the caller brings: here made-up ones.
trained-t5|examples/lab/t5 --what bias|What a small model trained on novels made of its buckets: the character before counts most, more than the query itself.
trained-kerple|examples/lab/kerple --what bias|The same model with KERPLE: one head in each layer has learned to look far.
distance|shaw --what distance --option clip_left=3 --option clip_right=3|Where a query stands from each key, as far as the scheme can tell.
END
}

page=$folder/README.md
{
    echo '# Gallery'
    echo
    echo 'What each scheme does, drawn by `locus plot` from the rules and kernels'"'"' definitions that compute it, in double'
    echo 'precision; two pictures are of [trained models](../../examples/lab/README.md). Queries run down, keys across. `make gallery` draws them anew; each picture follows the light or dark'
    echo 'theme of its reader.'
} >"$page"
every() { # the list, then the schemes that it does not name
    list
    "$locus" schemes --json | sed -n 's/^    "name": "\([a-z0-9_]*\)",$/\1/p' | while read -r scheme; do
        list | cut -d'|' -f2 | grep -q "^$scheme\( \|$\)" ||
            printf '%s|%s|%s\n' "$scheme" "$scheme" \
                "$("$locus" schemes "$scheme" | sed -n "1s/^[^:]*: \(.*\)/\1./p")"
    done
}
every | while IFS='|' read -r name arguments sentence; do
    # Arguments are words.
    # shellcheck disable=SC2086
    "$locus" plot $arguments -o "$folder/$name.svg" </dev/null
    printf '\n## %s\n\n%s\n\n![locus plot %s](%s.svg)\n\n    locus plot %s -o %s.svg\n' \
        "$name" "$sentence" "$arguments" "$name" "$arguments" "$name" >>"$page"
done
