"""Makes `tiny_llama`: a Llama of transformers with weights from a seed, and the tokens that it gives.

python tiny_llama.py
"""

import json
from pathlib import Path

import torch
import transformers

FOLDER = Path(__file__).parent / "tiny_llama"


def main() -> None:
    """Write the checkpoint, and what follows a prompt."""
    torch.manual_seed(11)
    config = transformers.LlamaConfig(
        vocab_size=48,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        initializer_range=0.4,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(FOLDER)
    prompt = torch.randint(0, config.vocab_size, (1, 6))
    with torch.inference_mode():
        found = model.generate(prompt, max_new_tokens=24, do_sample=False)
        logits = model(found).logits[0, -1]
    truth = {
        "prompt": prompt[0].tolist(),
        "tokens": found[0, prompt.shape[1] :].tolist(),
        "last_logits": [round(value, 6) for value in logits.tolist()],
        "by": f"transformers {transformers.__version__}, torch {torch.__version__}, seed 11",
    }
    (FOLDER / "truth.json").write_text(json.dumps(truth) + "\n")
    (FOLDER / "generation_config.json").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
