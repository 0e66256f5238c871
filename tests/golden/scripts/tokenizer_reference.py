"""Records how the reference implementations split, encode and repair text.

Usage: tokenizer_reference.py VOCAB_DIR OUT_DIR
VOCAB_DIR holds GPT-2's encoder.json and vocab.bpe. Needs tiktoken and regex.
"""

import json
import random
import sys

import regex
import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

RULE = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

PARTS = [
    "hello", " world", "don't", "I'LL", "we've ", " 'tis", "\n", "\r\n", "  ", "\t", " \n \n",
    "1234", "\u00bd", "\u0663\u0664", "\u4f60\u597d\u4e16\u754c", "\u65e5\u672c\u8a9e",
    "\U0001f600", "\U0001f469\u200d\U0001f4bb", "\u00a0", "\u3000", "\u180e", "\u0085", "\u2028",
    "\ufeff", "e\u0301", "\u00e9", "--", "...", "$100.5", "\u0e2a\u0e27\u0e31", "\u0645\u0631",
    "\u200b", "_x_", "\U0001d54f", "\U00020000", "Stra\u00dfe", "<|endoftext|>", "\x00", "\x7f",
    "a" * 70, "!" * 60, " " * 33,
]


def texts():
    source = random.Random(20240520)
    yield "In the beginning God created the heaven and the earth. \n\nAnd  the earth was void;  "
    yield "it's they'll we're I'd you've can't HE'S o'clock 'quoted'"
    yield "tabs\tand   runs \n of\r\nspace\u00a0\u00a0 end   "
    for _ in range(60):
        yield "".join(source.choice(PARTS) for _ in range(source.randint(1, 12)))


def repairs():
    source = random.Random(7)
    fixed = [b"ab\xff", b"\xe4\xbd", b"\xe4\xbdx", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf0\x9f\x98",
             b"\xf4\x90\x80\x80", b"\xf0\x80\x80\x80", b"\x80\x80", b"\xe0\x80\x80", b"ok \xc3\xa9"]
    bytes_pool = [0x41, 0x20, 0x80, 0xBF, 0xC2, 0xC3, 0xE0, 0xE4, 0xED, 0xA0, 0x9F, 0xF0, 0xF4, 0xFF]
    for _ in range(200):
        fixed.append(bytes(source.choice(bytes_pool) for _ in range(source.randint(1, 8))))
    for raw in fixed:
        yield [raw.hex(), raw.decode("utf-8", errors="replace")]


def main():
    vocab_dir, out_dir = sys.argv[1:]
    ranks = data_gym_to_mergeable_bpe_ranks(
        vocab_bpe_file=f"{vocab_dir}/vocab.bpe", encoder_json_file=f"{vocab_dir}/encoder.json")
    encoding = tiktoken.Encoding(name="gpt2", explicit_n_vocab=50257, pat_str=RULE,
                                 mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256})
    pieces = []
    tokens = []
    for text in texts():
        lengths = [len(part.encode()) for part in regex.findall(RULE, text)]
        assert sum(lengths) == len(text.encode())
        pieces.append({"text": text, "lengths": lengths})
        tokens.append({"text": text, "ids": encoding.encode_ordinary(text)})
    for name, value in (("gpt2_pieces", pieces), ("gpt2_tokens", tokens),
                        ("utf8_replacements", list(repairs()))):
        with open(f"{out_dir}/{name}.json", "w", encoding="ascii") as file:
            json.dump(value, file, ensure_ascii=True, separators=(",", ":"))
            file.write("\n")


main()
