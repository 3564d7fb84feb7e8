"""Write down what is said in audio files, one line a file: WAV, FLAC or OGG, of any rate, mono or stereo.

A model of a corpus with `speaker_cmvn` takes all files of a call for one speaker's: give all that you have of a voice.

reprise transcribe coldfusion/ctc/source/1 speech.wav talk.flac
"""

import argparse
from pathlib import Path

from reprise.opening import add_model_arguments, opened

FILES_AT_ONCE = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("files", nargs="+", type=Path, metavar="AUDIO", help="audio files")


def run(args: argparse.Namespace) -> None:
    from reprise.sound import read_sound

    model = opened(args)
    at_once = len(args.files) if model.hears_speakers else FILES_AT_ONCE
    for first in range(0, len(args.files), at_once):
        sounds = {f"{place}: {path}": read_sound(path) for place, path in enumerate(args.files[first:][:at_once])}
        for line in model.transcribe_all(sounds):
            print(line, flush=True)
