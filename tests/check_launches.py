#!/usr/bin/env python3
"""check_launches.py FUSEC [--sizes=tiny,full]

Networks of tests/corpus/models under full, in full and tiny sizes. Each takes no more launches than launches.json
states (what an expert would write), a decomposed variant no more than its original network, and a pattern of its family
claims it if there is one. Prints each failure and the number of networks; exit 0 only without failures."""
import argparse, json, os, subprocess, sys

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "models")
# By family: the patterns that claim its products or gated units.
CLAIMS = {"glu": "fusec.dual_gemm_", "gemm": "fusec.", "quant": "fusec.", "split": "fusec.", "norm": "", "attention": "",
          "gpt2": "", "stack": "", "ssm": ""}
# Networks of these families with nothing to claim: a single node, or no product and no gated unit.
UNCLAIMED = {"gemm_bias_f32", "gemm_bias_f32_dec", "fakequant_f32", "sinksplit_cast_fp16"}


def planned(fusec, name, size):
    process = subprocess.run([fusec, os.path.join(MODELS, f"{name}.{size}.json"), "--emit=partition", "--no-nvrtc"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if process.returncode != 0:
        raise RuntimeError(process.stderr.decode("utf-8", "replace").strip()[-600:])
    return json.loads(process.stdout)


def problem(fusec, entry, size, most, base):
    """What is wrong with the network in one size, or None. `base` maps networks to their launches."""
    report = planned(fusec, entry["name"], size)
    launches = base[entry["name"], size] = report["launches"]
    if launches > most:
        return f"{launches} launches, expected at most {most}"
    composite = base.get((entry["name"].removesuffix("_dec"), size), launches)
    if launches > composite:
        return f"{launches} launches, {composite} where it is not decomposed"
    wanted = CLAIMS[entry["family"]]
    claims = [g["claimed_by"] for g in report["groups"]]
    if wanted and entry["name"] not in UNCLAIMED and not any(c and c.startswith(wanted) for c in claims):
        return f"no group is claimed by {wanted}...: {claims}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--sizes", default="tiny,full")
    args = parser.parse_args()
    with open(os.path.join(MODELS, "index.json"), encoding="utf-8") as f:
        entries = [e for e in json.load(f) if e["family"] in CLAIMS]
    with open(os.path.join(MODELS, "launches.json"), encoding="utf-8") as f:
        most = json.load(f)
    base, checked, failures = {}, 0, 0
    for entry in sorted(entries, key=lambda e: e["name"].endswith("_dec")):
        if entry["name"] not in most:
            continue
        for size in args.sizes.split(","):
            checked += 1
            try:
                why = problem(args.fusec, entry, size, most[entry["name"]], base)
            except RuntimeError as error:
                why = str(error)
            if why:
                failures += 1
                print(f"FAILED {entry['name']} ({size}): {why}", flush=True)
    print(f"{checked} networks, {failures} failures")
    sys.exit(0 if checked and not failures else 1)


if __name__ == "__main__":
    main()
