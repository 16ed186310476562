#!/usr/bin/env python3
"""Makes transformer_losses.txt anew: the losses of 20 training steps of two small transformers, by the
models of the package transformers and PyTorch's AdamW, in float32 on the CPU. TransformerLosses.* of
test_optimizers compares with it; weights and tokens are numbers of a formula that both sides compute.

    transformer_losses.py [FILE]            both small models
    transformer_losses.py --full-width FILE    the second with the sizes of Qwen2.5-1.5B: 8 GB of memory
"""
import argparse
import pathlib

import numpy as np
import torch
import transformers

STEPS, BATCHES = 20, 4
DEFAULT = pathlib.Path(__file__).parent / "transformer_losses.txt"


def bits(name, count):
    """Of 32 bits each, from FNV-1a of the name and a hash of the index by C. Wellons (lowbias32)."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 % 2**32
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    return x ^ (x >> np.uint32(16))


def weights(name, shape, bound):
    """Uniform within `bound`; scales of normalizations around 1."""
    centre = 1.0 if name.endswith("gamma") else 0.0
    unit = (bits(name, int(np.prod(shape))) >> np.uint32(8)) / 2.0**23 - 1
    return torch.from_numpy((centre + unit * bound).astype(np.float32).reshape(shape))


def tokens(batch, sizes):
    """What goes in and what comes next."""
    rows, length = sizes["batch"], sizes["length"]
    ids = bits(f"tokens {batch}", rows * (length + 1)) % np.uint32(sizes["vocabulary"])
    ids = torch.from_numpy(ids.astype(np.int64).reshape(rows, length + 1))
    return ids[:, :-1], ids[:, 1:]


def normalization(of, path, names=("gamma",)):
    return {f"{path}/{name}": parameter for name, parameter in zip(names, (of.weight, getattr(of, "bias", None)))}


def gpt2(sizes):
    """The model, and its parameters by the names of catena; those of products are transposed."""
    config = transformers.GPT2Config(vocab_size=sizes["vocabulary"], n_positions=sizes["length"],
                                     n_embd=sizes["width"], n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
                                     attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    core, both = model.transformer, ("gamma", "beta")
    named = {"tokens/W": core.wte.weight, "places/W": core.wpe.weight}
    for i, block in enumerate(core.h):
        path = f"layers/{i}"
        products = {"self_attn/in_proj_": block.attn.c_attn, "self_attn/out_proj/": block.attn.c_proj,
                    "linear1/": block.mlp.c_fc, "linear2/": block.mlp.c_proj}
        for name, product in products.items():
            named |= {f"{path}/{name}W": product.weight.T, f"{path}/{name}b": product.bias}
        named |= normalization(block.ln_1, f"{path}/norm1", both) | normalization(block.ln_2, f"{path}/norm2", both)
    return model, named | normalization(core.ln_f, "norm", both)


def qwen2(sizes):
    """The same; the three projections of attention are one for catena."""
    config = transformers.Qwen2Config(vocab_size=sizes["vocabulary"], hidden_size=sizes["width"],
                                      intermediate_size=sizes["inner"], num_hidden_layers=2, num_attention_heads=12,
                                      num_key_value_heads=2, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                      rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    model = transformers.Qwen2ForCausalLM(config)
    core, depth = model.model, sizes["width"] // 12
    assert np.isclose(core.rotary_emb.inv_freq[1].item(), 1e6 ** (-2 / depth))
    named = {"tokens/W": core.embed_tokens.weight}
    for i, block in enumerate(core.layers):
        path, attention, products = f"layers/{i}", block.self_attn, block.mlp
        parts = attention.q_proj, attention.k_proj, attention.v_proj
        named |= {f"{path}/self_attn/in_proj_W": [p.weight for p in parts],
                  f"{path}/self_attn/in_proj_b": [p.bias for p in parts],
                  f"{path}/self_attn/out_proj/W": attention.o_proj.weight}
        for name in ("gate_proj", "up_proj", "down_proj"):
            named[f"{path}/mlp/{name}/W"] = getattr(products, name).weight
        named |= normalization(block.input_layernorm, f"{path}/norm1")
        named |= normalization(block.post_attention_layernorm, f"{path}/norm2")
    return model, named | normalization(core.norm, "norm")


def fill(model, named, bound):
    """Writes the weights, of which none may be left out."""
    filled = 0
    with torch.no_grad():
        for name, parts in named.items():
            parts = parts if isinstance(parts, list) else [parts]
            whole = weights(name, (sum(p.shape[0] for p in parts), *parts[0].shape[1:]), bound)
            for part, values in zip(parts, whole.split([p.shape[0] for p in parts])):
                part.copy_(values)
            filled += whole.numel()
    assert filled == sum(p.numel() for p in model.parameters()), filled


def losses(build, sizes):
    torch.manual_seed(0)
    model, named = build(sizes)
    fill(model, named, 1 / np.sqrt(sizes["width"]))
    rule = torch.optim.AdamW(model.parameters(), lr=sizes["rate"], betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    result = []
    for step in range(STEPS):
        ids, following = tokens(step % BATCHES, sizes)
        rule.zero_grad()
        scores = model(ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
        loss.backward()
        rule.step()
        result.append(loss.item())
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full-width", action="store_true")
    parser.add_argument("file", nargs="?", default=DEFAULT)
    arguments = parser.parse_args()
    origin = f"PyTorch {torch.__version__}, transformers {transformers.__version__}"
    if arguments.full_width:
        sizes = {"vocabulary": 151936, "width": 1536, "inner": 8960, "batch": 1, "length": 32, "rate": 0.0001}
        columns = {"Qwen2.5-1.5B with 2 layers": losses(qwen2, sizes)}
    else:
        sizes = {"vocabulary": 256, "width": 64, "batch": 2, "length": 32, "rate": 0.001}
        columns = {"GPT-2": losses(gpt2, sizes)}
        sizes = {"vocabulary": 512, "width": 96, "inner": 560, "batch": 2, "length": 32, "rate": 0.001}
        columns["Qwen2"] = losses(qwen2, sizes)
    header = f"Losses of {STEPS} steps by transformer_losses.py, {origin}: {', '.join(columns)}"
    np.savetxt(arguments.file, np.array(list(columns.values())).T, fmt="%.9g", header=header)


if __name__ == "__main__":
    main()
