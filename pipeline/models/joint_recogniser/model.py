"""A recogniser trained by CTC and attention together (Watanabe et al. 2017, section II-C, eq. 22).

Dimensions: B utterances, K texts of each, S frames, S' encoder positions of two or four frames, F features,
T characters, D d_model, V vocabulary.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.ctc.model import ctc_loss, frame_log_probs
from pipeline.models.joint_recogniser.settings import JointRecogniserConfig
from pipeline.models.layers.loss import projected_loss
from pipeline.models.layers.positions import length_mask, visible_mask, zero_padding
from pipeline.models.layers.speech_encoder import BidirectionalLSTM, normalise_and_mask
from pipeline.models.seq2seq import LossSums, Modules
from pipeline.models.settings import PAD
from pipeline.models.transformer.model import Transformer
from pipeline.models.transformer.multi_head_attention import attention_mask


class ConvolutionalEncoder(nn.Module):
    """Two strided convolutions, then residual BLSTMs, each behind a layer normalisation."""

    def __init__(self, config: JointRecogniserConfig):
        super().__init__()
        self.config, width, bands = config, config.d_model, config.features
        inputs, convolutions = 1, []
        for stride in config.strides:
            convolutions.append(nn.Conv2d(inputs, config.channels, 3, stride=(stride, 2), padding=1))
            inputs, bands = config.channels, -(-bands // 2)
        self.convolutions = Modules[nn.Conv2d](convolutions)
        self.project = nn.Linear(inputs * bands, width)
        self.norms = Modules[nn.LayerNorm](nn.LayerNorm(width) for _ in range(config.encoder_layers))
        self.layers = Modules[BidirectionalLSTM](BidirectionalLSTM(width, width // 2) for _ in self.norms)
        self.norm = nn.LayerNorm(width)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode speech.

        Args:
            frames: Log-mel features, shape (B, S, F).
            lengths: Frames of each utterance, shape (B,).

        Returns:
            Annotations (B, S', D), zero behind the end, and the encoder positions of each utterance (B,).
        """
        x = normalise_and_mask(self.config, frames, lengths, self.training).unsqueeze(1)
        for stride, convolution in zip(self.config.strides, self.convolutions, strict=True):
            lengths = -(-lengths // stride)
            x = convolution(x).relu()
            x = x * length_mask(lengths, x.shape[2])[:, None, :, None]
        x = self.project(x.transpose(1, 2).flatten(2))
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + F.dropout(layer(norm(x), lengths), self.config.encoder_dropout, self.training)
        return zero_padding(self.norm(x), lengths), lengths


class JointRecogniser(Transformer):
    """A Transformer decoder on a speech encoder whose output CTC reads, too."""

    config: JointRecogniserConfig

    def __init__(self, config: JointRecogniserConfig, vocab: int):
        super().__init__(config, vocab, vocab)
        self.encoder = Modules()
        self.speech_encoder = ConvolutionalEncoder(config)
        self.ctc_output = nn.Linear(config.d_model, vocab)

    def encode_batch(self, batch) -> tuple[Tensor, Tensor, Tensor | None]:
        """Encode speech; see `Transformer.encode_batch`. Its mask is True within the utterance."""
        encoded, lengths = self.speech_encoder(batch.frames, batch.frame_counts)
        real = visible_mask(lengths, encoded.shape[1])
        return encoded, real, attention_mask(real, self.output_weight)

    def log_probs(self, encoded: Tensor) -> Tensor:
        """Return log p_CTC(symbol | position), float32, shape (B, S', V), from the annotations `encoded` (B, S', D)."""
        return frame_log_probs(self.ctc_output(encoded))

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """Compute α L_CTC + (1 - α) L_attention (eq. 22), where α is `ctc_share`; see `Seq2Seq.loss`."""
        encoded, _, mask = self.encode_batch(batch)
        states = self.decode(batch.tgt_in, encoded, mask)
        attended = projected_loss(states, self.output_weight, None, batch, label_smoothing)
        aligned, share = ctc_loss(self.log_probs(encoded), self.config, batch), self.config.ctc_share
        loss = share * aligned.loss + (1 - share) * attended.loss
        return LossSums(loss, share * aligned.nll + (1 - share) * attended.nll, attended.tokens)

    def text_log_probs(self, encoded: Tensor, real: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        """Compute log p_attention(text | speech) of several texts per utterance, EOS included.

        Args:
            encoded: Annotations, shape (B, S', D).
            real: Their mask, shape (B, S'), True within the utterance.
            tgt_in: Decoder inputs, BOS first, shape (B, K, T).
            tgt_out: Targets, EOS last, PAD behind it, shape (B, K, T).

        Returns:
            Log-probabilities in nats, shape (B, K).
        """
        count = tgt_in.shape[1]
        encoded, real = (tensor.repeat_interleave(count, dim=0) for tensor in (encoded, real))
        mask = attention_mask(real, self.output_weight)
        logits = self.logits(self.decode(tgt_in.flatten(0, 1), encoded, mask))
        symbols = tgt_out.flatten(0, 1)
        found = logits.log_softmax(-1).gather(-1, symbols.unsqueeze(-1)).squeeze(-1)
        return found.masked_fill(symbols == PAD, 0.0).sum(1).view(-1, count)


def build(config: JointRecogniserConfig, vocab_sizes: tuple[int, int]) -> JointRecogniser:
    """Return a model with random weights; see `build_model`. Only the target vocabulary is used."""
    return JointRecogniser(config, vocab_sizes[1])
