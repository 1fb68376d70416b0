# SPDX-License-Identifier: Apache-2.0
# The groups of ranks that Megatron-Core's RankGenerator makes beside those of `swsim groups`: sizes, orders, both grids.
import itertools, json, os

from tap import check, done, needs, swsim

needs("torch", "megatron.core.parallel_state")
from megatron.core.parallel_state import RankGenerator, default_embedding_ranks

LONG = "SWSIM_LONG" in os.environ
ORDERS = ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "pp-dp-tp-cp-ep", "dp-pp-cp-tp-ep", "tp-dp-pp", "cp-tp-pp-dp"]
SIZES = [(tp, cp, dp, pp) for tp in (1, 2, 3) for cp in (1, 2) for dp in (1, 2, 4) for pp in (1, 2, 3)]
if LONG:
    ORDERS = ["-".join(order) for order in itertools.permutations(("tp", "cp", "ep", "dp", "pp"))]


def plan(tp, cp, dp, pp, ep, expert_tp, order):
    return (f"swplan: 1\nname: g\nparallel: {{tp: {tp}, cp: {cp}, dp: {dp}, pp: {pp}, ep: {ep}, expert_tp: {expert_tp}, "
            f"order: {order}}}\ngenerate: {{schedule: gpipe, ranks: {pp}, microbatches: 1}}\n")


# The two generators of initialize_model_parallel, with its conditions; None: it refuses.
def theirs(tp, cp, dp, pp, ep, expert_tp, order):
    stage = tp * cp * dp
    if stage % (expert_tp * ep):
        return None
    expert_dp = stage // (expert_tp * ep)
    try:
        dense = RankGenerator(tp=tp, ep=1, dp=dp, pp=pp, cp=cp, order=order)
        experts = RankGenerator(tp=expert_tp, ep=ep, dp=expert_dp, pp=pp, cp=1, order=order)
    except RuntimeError:
        return None
    if dense.get_ranks("pp") != experts.get_ranks("pp"):
        return None
    found = {kind: dense.get_ranks(kind) for kind in ("tp", "cp", "dp", "dp-cp", "pp")}
    found["ep"] = experts.get_ranks("ep")
    found["expert-tp"] = experts.get_ranks("tp")
    found["expert-dp"] = experts.get_ranks("dp")
    found["embedding"] = [default_embedding_ranks(ranks) for ranks in dense.get_ranks("pp")]
    return found


def differences(order):
    same = refused = 0
    told = []
    for (tp, cp, dp, pp), ep, expert_tp in itertools.product(SIZES, (1, 2, 4), (1, 2)):
        numbers = (tp, cp, dp, pp, ep, expert_tp, order)
        expected = theirs(*numbers)
        made = swsim("groups", "--json", "-", stdin=plan(*numbers))
        got = json.loads(made.stdout)["groups"] if made.returncode == 0 else None
        same += got == expected and got is not None
        refused += got is None and expected is None
        if got != expected:
            told.append(f"{numbers}: ours {got or made.stderr} theirs {expected}")
    return same, refused, told


for order in ORDERS:
    same, refused, told = differences(order)
    check(f"{order}: {same} grids with the same groups, {refused} refused by both", same and not told, "\n".join(told[:5]))
done()
