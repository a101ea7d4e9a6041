/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one instruction set: KERNELS_NAME, KERNELS_ISA and KERNELS_CPU come from
 * the including isa/<isa>.c. */

const locus_kernels KERNELS_NAME = {
    .isa = KERNELS_ISA,
    .cpu = KERNELS_CPU,
    .pack = pack,
    .transpose = transpose,
    .product = product,
    .dots = dots,
    .mix = mix,
    .pair_dots = pair_dots,
    .row_dots = row_dots,
    .gemm = gemm,
    .gemm_times = gemm_times,
    .linear = linear,
    .bad_rows = bad_rows,
    .softmax_step = softmax_step,
    .softmax_end = softmax_end,
    .softmax_again = softmax_again,
    .softmax_grad = softmax_grad,
    .drop = drop,
    .expand = expand,
    .read_columns = read_columns,
    .fold = fold,
    .turn = turn_rows,
    .slide = slide,
    .add = add,
    .add_bias = add_bias,
    .scale = scale,
    .scale_rows = scale_rows,
    .fade = fade,
};
