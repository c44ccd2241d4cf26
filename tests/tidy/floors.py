# SPDX-License-Identifier: Apache-2.0
"""Includes point down: src/FLOORS says what is down."""

import re

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def parse(text):
    """Room to floor number."""
    floor_of = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            number, *rooms = line.split()
            floor_of.update(dict.fromkeys(rooms, int(number)))
    return floor_of


def check_file(file, floor_of):
    """Sentences about the includes of one file under src/."""
    if file.room not in floor_of:
        return [f"{file.path}: {file.room} is no room of src/FLOORS"]
    sentences = []
    for target in INCLUDE.findall(file.text):
        room, slash, _ = target.partition("/")
        if not slash or room not in floor_of:
            sentences.append(f'{file.path}: "{target}" names no room of src/FLOORS')
        elif room != file.room and floor_of[room] >= floor_of[file.room]:
            way = "up" if floor_of[room] > floor_of[file.room] else "sideways"
            sentences.append(f'{file.path}: "{target}" looks {way}')
    return sentences


def check(files, floor_of):
    return [sentence for file in files if file.is_c and file.room for sentence in check_file(file, floor_of)]
