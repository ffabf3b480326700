"""An attention service as a process of its own: writes one prompt's text, byte by byte, one JSON line each.

Usage: attention_client.py ADDRESS PROMPT_NAME [--idle]. With --idle it opens its session, says so, and does nothing.
"""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy" / "demo"))

import moetier  # noqa: E402
from attention_service import AttentionService  # noqa: E402
from process_tier import MODEL  # noqa: E402


def main():
    address, name = sys.argv[1:3]
    wanted = json.loads((MODEL / "greedy.json").read_text())[name]
    prompt, expected = wanted["prompt"].encode("latin-1"), wanted["greedy"].encode("latin-1")
    with moetier.connect(address) as connection, connection.session(max_tokens=256) as session:
        print(json.dumps({"session": "open"}), flush=True)
        while "--idle" in sys.argv:
            time.sleep(0.1)
        written = bytearray(prompt)
        for token, _ in AttentionService(MODEL, session).generate(prompt, len(expected) - len(prompt)):
            written.append(token)
            print(json.dumps({"byte": token}), flush=True)
    print(json.dumps({"equal": bytes(written) == expected}), flush=True)


if __name__ == "__main__":
    main()
