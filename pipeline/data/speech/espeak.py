"""eSpeak NG, the synthesiser, from its wheel: text to samples through the C library.

The library keeps state from one utterance to the next (the flutter of its voices goes on), which it has no call to
reset, and seeds the breath of its voices by the clock if nobody else does. With a seed given, what it says is a
function of all that its process has said.
"""

import ctypes

import espeakng_loader
import numpy as np

from pipeline.core.errors import UserError

SAMPLE_RATE = 22050
SYNCHRONOUS = 2
RATE, PITCH = 1, 3
UTF8 = 1
SEED = 1
CHARACTER_POSITION = 1
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Synthesiser:
    """One for a process: the library has but one state.

    Raises:
        UserError: the library does not start.
    """

    def __init__(self):
        self.library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.rate = self.library.espeak_Initialize(SYNCHRONOUS, 0, str(espeakng_loader.get_data_path()).encode(), 0)
        if self.rate != SAMPLE_RATE:
            raise UserError(f"eSpeak NG starts at {self.rate} Hz, not {SAMPLE_RATE}; reinstall espeakng-loader")
        self.library.espeak_ng_SetRandSeed(ctypes.c_long(SEED))
        self.pieces: list[bytes] = []
        self.callback = Callback(self._receive)  # kept: the library holds no reference to it
        self.library.espeak_SetSynthCallback(self.callback)

    def _receive(self, samples, count: int, events: int) -> int:
        if samples and count:
            self.pieces.append(ctypes.string_at(samples, count * ctypes.sizeof(ctypes.c_short)))
        return 0

    def say(self, text: str, voice: str, words_per_minute: int, pitch: int) -> np.ndarray:
        """Samples (n,) int16 at SAMPLE_RATE.

        Raises:
            UserError: the voice is unknown, or the text can't be said.
        """
        if self.library.espeak_SetVoiceByName(voice.encode()):
            raise UserError(f"readers.voices: eSpeak NG has no voice {voice!r}; `espeak-ng --voices` lists its files")
        self.library.espeak_SetParameter(RATE, words_per_minute, 0)
        self.library.espeak_SetParameter(PITCH, pitch, 0)
        self.pieces.clear()
        content = text.encode()
        fault = self.library.espeak_Synth(
            content, ctypes.c_size_t(len(content) + 1), 0, CHARACTER_POSITION, 0, UTF8, None, None
        )
        if fault or not self.pieces:
            raise UserError(f"eSpeak NG can't say {text!r} as {voice} (code {fault}); leave the sentence out")
        return np.frombuffer(b"".join(self.pieces), np.int16)


def version() -> str:
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    library.espeak_Info.restype = ctypes.c_char_p
    return library.espeak_Info(None).decode()
