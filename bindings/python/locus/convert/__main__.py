# SPDX-License-Identifier: Apache-2.0
import argparse
import sys

from . import ConvertError, __doc__, convert


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m locus.convert", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="a file or a folder of torch, ONNX, CTranslate2, GGUF, llama2.c, Piper"
    )
    parser.add_argument("-o", dest="folder", metavar="FOLDER", required=True, help="where the model goes")
    parser.add_argument("--config", metavar="FILE", help="a config.json to take in place of the one beside SOURCE")
    parser.add_argument("--tokenizer", metavar="PATH", help="a tokenizer file, or a folder with them, to copy")
    options = parser.parse_args(arguments)
    try:
        name, tensors, numbers = convert(
            options.source, options.folder, config=options.config, tokenizer=options.tokenizer
        )
    except ConvertError as problem:
        print(f"locus.convert: {problem}", file=sys.stderr)
        return 1
    print(f"{options.folder}: {tensors} tensors, {numbers} numbers, from {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
