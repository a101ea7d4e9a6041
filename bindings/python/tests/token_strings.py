# SPDX-License-Identifier: Apache-2.0
"""Texts that tokenizers disagree about, and a grammar of such pieces."""

import random

HARD = [
    '', ' ', '  ', '\t', '\n', '\r\n', 'a\r\nb', '\x00', 'a\x00b', ' \x00 ', 'Hello, world!', 'Hello  world ',
    '  leading', 'trailing  ', 'The quick brown fox jumps over the lazy dog.', 'na\xefve caf\xe9 r\xe9sum\xe9',
    'CAF\xc9 \xdcn\xefc\xf6d\xe9 \xc0\xc9\xce', '\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8',
    '\u4e2d\u6587 text \u6df7\u5408', '\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8',
    '\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645',
    '\u0627\u0644\u0633\u064e\u0651\u0644\u064e\u0627\u0645\u064f \u0639\u064e\u0644\u064e\u064a\u0652\u0643\u064f\u0645\u0652',
    '\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e',
    '\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f', '\u0e44\u0e17\u0e22\u0e20\u0e32\u0e29\u0e32', 'e\u0301',
    'a\u0301\u0302\u0323b', '\u0301', '\u0301\u0301', 'x\u0323\u0307\u0301',
    '\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466', '\U0001f44d\U0001f3fd',
    '\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7', '\U0001f937\u200d\u2642\ufe0f ok', '\ufb01ne \ufb02ow',
    '\u2460\u2461\u2462 \xbd \xbe', '\uff26\uff35\uff2c\uff2c\u3000\uff57\uff49\uff44\uff54\uff48',
    '\xaa\u0301 \xba', '\xaa\u200d', '\u2122\u200d\u2122', '\xc5 \xc5 \xc5', '\u1e9e \xdf \u017f',
    '\u0130stanbul \u0131I', '\u0391\u03a3 \u03a3\u0391\u03a3 \u03c2', '\u01c5 \u01c6',
    "it's we're I'LL '\u017f 'S don't", '1234567 12,345.67 9,9 99,', '9, 10,', '[CLS] [MASK] [SEP]',
    '<s> </s> <mask> <unk> <pad>', 'a<mask>b  <mask> c', '<extra_id_0> and <extra_id_99>', 'text</s>', '</s>',
    '<|endoftext|>hi<|endoftext|>', '<|mask|> a  <|mask|>  b', 'zzz zzzz zzz.', 'a zzz b', "``quoted'' ''x``",
    '...!!!???', 'a.b,c;d', '(x|y)[z]{w}', '\xa0\u2003\u3000x', '\u200b\u200c\u200d\ufeff', '\xad\u0600a\u0301',
    '\ufffd', '\U0001f600\u0301', '\u1100\u1161\u11a8 \uac00\u11a8', 'x' * 101, 'x' * 100, 'ab' * 300,
    '\u2581\u2581 a \u2581b', '\u2581', '_', 'a_b', "don't stop", '\x1c\x1d\x1e\x1fz', '\x85\x0b\x0c',
    'http://example.com/?q=1&b=2', '#hash @user $5 100%', '\u0378\u0e01', '\U000e0001', '\U0001d7d8\U0001d400',
    '\u337f \u338f', '\u0958 \u09c7\u09be', 'q\u0307\u0323', '\u1e9b\u0323', '\u2126 \u212b', '\uf900', '\U0002f800',
    '>>fra<< hello', '>>fra<<', '>><<x', '<0x41> <0xE2>', 'a' * 1000, '\u0600a\u0301', "a\u0301" * 5,
    'e\u0302\u0301x', '\r', '\n\n\n a \n', '\t\ttab', 'Hello\n\nWorld  \n  x', '\u2028\u2029', '\xdf' * 50,
    '\xbda\u0301', '\u0345\u0301', '\u302e\u0323a\u302e\u0323', 'x\xa0\u09c7\t<|mask|>', 'x\u2003\u0f72\xa0<|mask|>',
]

INVALID = [
    b'\xff', b'a\xffb', b'\xe2\x82A', b'\xe2\x82', b'\xf0\x9f\x98', b'\xc0\x80', b'\xed\xa0\x80',
    b'\xf4\x90\x80\x80', b'ok \x80\x80 x', b'\xe2(\xa1',
]

PIECES = [
    'a', 'b', 'hello', 'World', 'THE', 'ing', ' ', '  ', '\t', '\n', '\r\n', '\x00', ',', '.', '!', '?', "'", "'s",
    "'re", '"', '``', "''", '-', '_', '\u2581', '1', '23', '4567', '9,', '\xe9', '\xc9', '\xfc', '\xf1', '\xdf',
    '\u0130', '\u03a3', '\u03c2', '\u017f', '\u4e2d', '\u6587', '\u65e5\u672c', '\ud55c', '\uad6d', '\u0627',
    '\u0644', '\u0645\u0631', '\u064e', '\u0651', '\u0928', '\u092e', '\u094d', '\u093f', '\u0915\u094d\u0937',
    '\u0e01', '\u0e33', '\u0301', '\u0302', '\u0323', '\u0307', '\u0345', '\u200d', '\u200c', '\u200b', '\ufe0f',
    '\U0001f468', '\U0001f469', '\U0001f3fd', '\U0001f1e9', '\U0001f1ea', '\u2642', '\u2122', '\xaa', '\xba', '\xbd',
    '\ufb01', '\u2460', '\uff21', '\u3000', '\xa0', '\u2003', '\x85', '\x1c', '\xad', '\u0600', '\ufffd', '\ufeff',
    '\U0001d400', '\u1100', '\u1161', '\u11a8', '\uac00', '\xc5', '\xc5', '[CLS]', '[SEP]', '[MASK]', '[UNK]',
    '[PAD]', '<s>', '</s>', '<unk>', '<pad>', '<mask>', '<extra_id_7>', '<|endoftext|>', '<|mask|>', '<|im_start|>',
    'zzz', '<cls>', '<sep>', '<eod>', '<0x41>', '(', ')', '|', '[', ']', '\u2026', '\u3002', '\uff0c', '\u3001',
    '\u0964', '\u06d4', '\u060c', 'e', 'o', '\u093c', '\u0915', '\u09c7', '\u09be', '\u0f71', '\u0f72', '\u302e',
    '\U0001f600', '~', '@', '#', '\u1abf', '\u07fd', '\u32ff', '\u03f9', '\u01c5', '\u2126',
]


def grammar(count, seed=1):
    """`count` strings of 1 to 14 pieces, the same for every run."""
    rng = random.Random(seed)
    for _ in range(count):
        yield "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 14)))
