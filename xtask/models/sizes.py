"""Small sizes for the configurations of transformers."""

VOCABULARY = 99
# The sizes that most configurations call by the same names.
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
GROUPED = {**SMALL, "num_key_value_heads": 2}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
BART = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
IMAGE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
CLIP = {
    "text_config": {**SMALL, "eos_token_id": 98, "projection_dim": 16, "bos_token_id": 0, "pad_token_id": 1},
    "vision_config": {**IMAGE, "projection_dim": 16},
    "projection_dim": 16,
}
# Speech encoders on raw samples.
SPEECH = {
    **SMALL,
    "conv_dim": [8, 8, 8],
    "conv_stride": [5, 4, 2],
    "conv_kernel": [10, 4, 3],
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 3,
    "mask_time_prob": 0.0,
}
