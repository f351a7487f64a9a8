"""What `plan` says of the runs of 2019, beside what was measured then. Prints one JSON line.

    python benchmarks/plan_history.py

Two hosts with two V100s each, Transformer-base in mixed precision (what `auto` is on a V100: fp16), exact gradients in
fp32. 100 Mb/s and 1 Gb/s are ports; 221 MB/s is what a monitor saw get through.
"""

import json

from dragoman.plan.checkpoint import classic_bytes
from dragoman.plan.machines import parse_link, parse_machines
from dragoman.plan.prediction import predict_run
from dragoman.plan.setting import Prices, setting_of_machines
from dragoman.recipe import load_recipe

SETTINGS = ("sync.method=dense", "sync.precision=fp32")
MEASURED_STEP_SECONDS = {"100mbit": 29.6, "1gbit": None, "221MB/s": [1.65, 1.73]}
MEASURED_CHECKPOINT_BYTES = 852_000_000


def main() -> None:
    recipe = load_recipe("wmt14-en-de-classic", SETTINGS)
    machines = parse_machines("2x2:V100")
    found: dict[str, object] = {}
    for link, measured in MEASURED_STEP_SECONDS.items():
        setting = setting_of_machines(recipe, machines, parse_link(link), prices=Prices(per_hour=14.3))
        prediction = predict_run(setting)
        cost = prediction.cost.machines
        found[link] = {
            "sent_bytes": prediction.sent_bytes,
            "formula": prediction.formula,
            "step_seconds": round(prediction.step.total_seconds, 3),
            "between": [round(prediction.low_step_seconds, 3), round(prediction.high_step_seconds, 3)],
            "measured_step_seconds": measured,
            "exchange_alone_seconds": None if prediction.floor_seconds is None else round(prediction.floor_seconds, 3),
            "waiting_share": round(prediction.step.waiting_share, 3),
            "hours": round(prediction.train_seconds / 3600, 1),
            "dollars": None if cost is None else round(cost),
        }
        files = prediction.checkpoint_files
        classic = classic_bytes(setting.compute.middle.num_parameters)
    found["checkpoint"] = {"files": files, "classic": classic, "classic_bytes": sum(classic.values())}
    found["measured_checkpoint_bytes"] = MEASURED_CHECKPOINT_BYTES
    print(json.dumps(found))


if __name__ == "__main__":
    main()
