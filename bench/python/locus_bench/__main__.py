# SPDX-License-Identifier: Apache-2.0
"""``python -m locus.bench``: the peers beside Locus in one run."""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings

EXAMPLES = """\
examples:
  python -m locus.bench                                  all contests at 128, 512 and 2,048 tokens
  python -m locus.bench --only t5,deberta --sizes 512    two of them, one size
  python -m locus.bench --only models --full-models      DeBERTa-v3-base and T5-base encoders, 12 layers, patched and not
  python -m locus.bench --only hub --threads 1           attn_implementation="locus" beside "sdpa": prefill, decoding, training
  python -m locus.bench --only packed,calls --threads 1  texts of mixed length in one row; what a call costs beside its work
  python -m locus.bench --only families --sizes 16,128,512 --pass forward --threads 1
                                                         encoders of the shapes of small checkpoints, patched and not
  python -m locus.bench --only training --threads 1      steps of `locus lab train` beside PyTorch loops of the same model
  python -m locus.bench --only runtime --sizes 16,128,512 --pass forward --threads 1
                                                         encoders by the C runtime beside torch, ONNX Runtime and CTranslate2
  python -m locus.bench --only sentences,generation,starts --text lines.txt --folder all-MiniLM-L6-v2 --threads 1
                                                         lines of mixed length, tokens per call, start to result, tokenizing
  python -m locus.bench --no-flex -o results             without the minutes that compiling FlexAttention takes
  python -m locus.bench --only plain,t5,shaw,xl-core,deberta-core --sizes 64,128 --heads 96 --threads 1 \\
      --pass forward --layout heads --keep-memory        attention alone against the best of PyTorch and ONNX Runtime

Writes bench.json, bench.md and bench.svg. Every output is compared with double precision before it is timed. Both sides have the
same threads. Without --only, models are measured up to 512 tokens; hub, packed, calls, families, runtime, sentences, generation and starts are left out. Exit code 1: a contestant computed something else.
"""

MOST_TOKENS_OF_A_QUICK_MODEL = 512
PASSES = ("forward", "forward + backward")  # by whether it is training
WANTED = {"forward": (False,), "training": (True,), "both": (False, True)}


def _numbers(text: str) -> list:
    return [int(item) for item in text.split(",")]


def _names(text: str) -> list:
    return text.split(",")


def _options(contests) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m locus.bench",
        usage="python -m locus.bench [options]",
        description=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=_numbers, default=[128, 512, 2048], metavar="N,...", help="tokens")
    parser.add_argument("--only", type=_names, metavar="NAME,...", help="of: " + ", ".join(contests))
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--enough", type=float, default=0.1, help="seconds per contestant and round, at least (0.1)")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=64, help="of a head (64)")
    parser.add_argument("--layers", type=int, help="of the models (2)")
    parser.add_argument("--full-models", action="store_true", help="models with 12 layers and the whole vocabulary")
    parser.add_argument("--threads", type=int, default=0, help="of torch and of Locus (what torch takes)")
    parser.add_argument("--pass", dest="which", choices=WANTED, default="both", help="forward, training or both (both)")
    parser.add_argument(
        "--layout", choices=("tokens", "heads"), default="tokens", help="of q, k, v: (B,T,H,D) as models have it (tokens), or (B,H,T,D)"
    )
    parser.add_argument("--text", metavar="FILE", help="lines for sentences, and what starts tokenizes")
    parser.add_argument("--folder", metavar="DIR", help="a trained encoder with tokenizer.json, for starts")
    parser.add_argument("--keep-memory", action="store_true", help="malloc keeps what tensors free, in the peers' favour")
    parser.add_argument("--no-flex", dest="flex", action="store_false", help="without compiled FlexAttention")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("locus-bench"), metavar="DIR")
    return parser


def _measure(contest, tokens: int, options, result: dict) -> bool:
    from . import measure, report

    errors = measure.errors(contest)
    wrong = {name: error for name, error in errors.items() if not error <= measure.TOLERANCE}
    for name, error in wrong.items():
        print(f"{contest.name}, n = {tokens}: {name} is {error:.1e} off, expected {measure.TOLERANCE}", file=sys.stderr)
        del contest.runs[name]
    result["absent"] += [
        {"contest": f"{contest.name}, n = {tokens}", "contestant": name, "why": why}
        for name, why in contest.absent.items()
    ]
    contest.exact = None  # its copies in double are large
    if "locus" not in contest.runs:
        return False
    for training in WANTED[options.which]:
        if training and contest.forward_only >= set(contest.runs):
            continue
        times = measure.times(contest, training, options.rounds, options.enough)
        result["timed"].append((contest, tokens, training, times, errors))
        ratios = ", ".join(f"{name} {report.span(entry)}" for name, entry in times.items() if name != "locus")
        print(f"  {contest.name}, {PASSES[training]}: {ratios}", file=sys.stderr)
    return not wrong


def _entries(result: dict):
    """Memory comes last, because it is measured with another setting of malloc."""
    from . import measure

    for contest, tokens, training, times, errors in result.pop("timed"):
        peaks = measure.peaks(contest, training)
        for name, medians in times.items():
            yield {
                "contest": contest.name,
                "tokens": tokens,
                "pass": PASSES[training],
                "contestant": name,
                **medians,
                "peak_bytes": peaks.get(name),
                "error": errors[name],
            }


def main(arguments=None) -> int:
    try:
        import torch
        import transformers
    except ImportError as error:
        print(f"python -m locus.bench needs torch and transformers: {error}", file=sys.stderr)
        return 4
    import locus

    from . import contests, measure, onnx, report, training
    from .contest import Shape

    options = _options(contests.CONTESTS).parse_args(arguments)
    if options.only == ["training"]:
        torch.set_num_threads(options.threads or torch.get_num_threads())
        return training.main(torch, options)
    unknown = [name for name in options.only or () if name not in contests.CONTESTS]
    if unknown:
        print(f"--only: found {unknown[0]!r}, expected one of {', '.join(contests.CONTESTS)}", file=sys.stderr)
        return 2
    if options.layers is None:
        options.layers = 12 if options.full_models else 2
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    about = {
        "locus": locus.__version__,
        "isa": locus.cpu_info()["isa"],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "onnxruntime": onnx.version() or None,
        "threads": torch.get_num_threads(),
        "rounds": options.rounds,
        "batch": options.batch,
        "heads": options.heads,
        "width": options.width,
        "layout": options.layout,
        "memory": "kept" if options.keep_memory else "returned",
    }
    if options.keep_memory:
        measure.keep_memory()
    result = {"about": about, "entries": [], "absent": [], "timed": []}
    right = True
    for name in options.only or [name for name in contests.CONTESTS if name not in contests.BY_NAME]:
        for tokens in options.sizes[:1] if name in contests.SIZELESS else options.sizes:
            if options.only is None and name == "models" and tokens > MOST_TOKENS_OF_A_QUICK_MODEL:
                continue
            print(f"{name}, n = {tokens} ...", file=sys.stderr)
            shape = Shape(options.batch, options.heads, tokens, options.width)
            for make in contests.CONTESTS[name]:
                torch.manual_seed(0)
                contest = make(shape, options)
                if contest is not None:
                    right &= _measure(contest, tokens, options, result)
    result["entries"] = list(_entries(result))
    report.write(result, options.output)
    print(report.markdown(result), end="")
    print(f"wrote {options.output}/bench.json, bench.md, bench.svg", file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
