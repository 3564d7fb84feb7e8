"""CTC and attention trained together on one encoder (Watanabe et al. 2017, section II-C, eq. 22).

Dimensions: B utterances, K texts of each, S' encoder positions, T characters, D d_model, V vocabulary.
"""

from torch import Tensor, nn

from pipeline.core.symbols import PAD
from pipeline.models.ctc.model import ctc_loss, frame_log_probs
from pipeline.models.joint_recogniser.encoder import ConvolutionalEncoder
from pipeline.models.joint_recogniser.settings import JointRecogniserConfig
from pipeline.models.layers.loss import projected_loss
from pipeline.models.layers.modules import Modules
from pipeline.models.layers.reading import visible
from pipeline.models.seq2seq import LossSums
from pipeline.models.transformer.model import Transformer
from pipeline.models.transformer.multi_head_attention import attention_mask


class JointRecogniser(Transformer):
    """The decoder of a Transformer; its encoder's outputs are read by CTC, too."""

    config: JointRecogniserConfig

    def __init__(self, config: JointRecogniserConfig, vocab: int):
        super().__init__(config, vocab, vocab)
        self.encoder = Modules()
        self.speech_encoder = ConvolutionalEncoder(config)
        self.ctc_output = nn.Linear(config.d_model, vocab)

    def read(self, batch) -> tuple[Tensor, Tensor, Tensor | None]:
        encoded, lengths = self.speech_encoder(batch.frames, batch.frame_counts)
        real = visible(lengths, encoded.shape[1])
        return encoded, real, attention_mask(real, self.output_weight)

    def log_probs(self, encoded: Tensor) -> Tensor:
        """log p_CTC(symbol | position), (B, S', V) float32 of annotations (B, S', D)."""
        return frame_log_probs(self.ctc_output(encoded))

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """α L_CTC + (1 - α) L_attention; label smoothing is the decoder's."""
        encoded, _, mask = self.read(batch)
        states = self.decode(batch.tgt_in, encoded, mask)
        written = projected_loss(states, self.output_weight, None, batch, label_smoothing)
        aligned, share = ctc_loss(self.log_probs(encoded), self.config, batch), self.config.ctc_share
        loss = share * aligned.loss + (1 - share) * written.loss
        return LossSums(loss, share * aligned.nll + (1 - share) * written.nll, written.tokens)

    def text_log_probs(self, encoded: Tensor, real: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        """log p_attention(text | speech), (B, K) of tgt_in and tgt_out (B, K, T), EOS counted."""
        count = tgt_in.shape[1]
        encoded, real = (one.repeat_interleave(count, dim=0) for one in (encoded, real))
        mask = attention_mask(real, self.output_weight)
        logits = self.logits(self.decode(tgt_in.flatten(0, 1), encoded, mask))
        symbols = tgt_out.flatten(0, 1)
        found = logits.log_softmax(-1).gather(-1, symbols.unsqueeze(-1)).squeeze(-1)
        return found.masked_fill(symbols == PAD, 0.0).sum(1).view(-1, count)


def build(config: JointRecogniserConfig, vocab_sizes: tuple[int, int]) -> JointRecogniser:
    return JointRecogniser(config, vocab_sizes[1])
