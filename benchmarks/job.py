# SPDX-License-Identifier: MIT
"""One measurement in a fresh process: `python job.py QUESTION '{"argument": ...}'` prints JSON."""

import json
import sys

import questions
import questions_feedline
import questions_formats

QUESTIONS = questions.QUESTIONS | questions_feedline.QUESTIONS | questions_formats.QUESTIONS

if __name__ == "__main__":
    print(json.dumps(QUESTIONS[sys.argv[1]](**json.loads(sys.argv[2]))))
