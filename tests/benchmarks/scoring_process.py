"""A process that scores what each line of its input asks for, with whatever version of drillrank is on its path.

    python scoring_process.py MODEL_DIRECTORY TARGET

A line is a list of prompts in JSON: wording is a string, a document the list of its text. It is answered by the CPU
seconds that it took, and the mean log-likelihoods of the target.
"""

import json
import sys
from time import process_time

from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.prompts import Evidence


def main() -> None:
    model, target = HuggingFaceModel(sys.argv[1], dtype="float32"), sys.argv[2]
    for line in sys.stdin:
        prompts = [
            tuple(part if isinstance(part, str) else Evidence(*part) for part in parts) for parts in json.loads(line)
        ]
        started = process_time()
        found = model.log_likelihood([Request(prompt, target) for prompt in prompts])
        print(json.dumps([process_time() - started, [one.mean for one in found]]), flush=True)


if __name__ == "__main__":
    main()
