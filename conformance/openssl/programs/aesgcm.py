"""Core time of AES-256-GCM by Python's `cryptography`, which has to be the distribution's, on the distribution's OpenSSL.

usage: aesgcm.py MESSAGES BYTES [FILE]: microseconds of core time for a message, and the last tag, by which runs are compared; FILE gets the last message
"""
import sys
import time

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

messages, size = map(int, sys.argv[1:3])
cipher, text = AESGCM(bytes(range(32))), bytes(size)
began = time.process_time()
for number in range(messages):
    sealed = cipher.encrypt(number.to_bytes(12, "big"), text, None)
print(f"{(time.process_time() - began) / messages * 1e6:.2f} {sealed[-16:].hex()}")
if sys.argv[3:]:
    with open(sys.argv[3], "wb") as file:
        file.write(sealed)
