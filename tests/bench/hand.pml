/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hand.pml - SparseDist under the clock, retire: submit, 8 iterations, one rank, as who knows the plan would write it for
 * SPIN: each dependence is a channel with one writer and one reader, so that its reduction sees all of them as exclusive.
 */
chan q_m = [12] of { byte };
chan q_d = [12] of { byte };
chan q_x = [12] of { byte };
chan copied = [4] of { bit };
chan dist_wait = [4] of { bit };
chan dist_forward = [4] of { bit };
chan go = [4] of { byte }; chan done = [4] of { bit };
active proctype driver() { byte p; xs go; xr done;
  p = 0; do :: p < 10 -> if :: p >= 3 -> done?0 :: else fi; go!p; p++ :: else -> break od;
  byte k; for (k : 1 .. 3) { done?0 } }
active proctype worker() { byte p; xr go; xs done; xs q_m; xs q_d; xs q_x; byte k;
  for (k : 1 .. 10) { go?p;
    if :: p >= 0 && p < 8 -> q_m!0 :: else fi;
    if :: p >= 1 && p - 1 < 8 -> q_d!1 :: else fi;
    if :: p >= 1 && p - 1 < 8 -> q_d!2 :: else fi;
    if :: p >= 2 && p - 2 < 8 -> q_x!3 :: else fi;
    if :: p >= 2 && p - 2 < 8 -> q_x!4 :: else fi;
    if :: p >= 2 && p - 2 < 8 -> q_x!5 :: else fi;
    if :: p >= 2 && p - 2 < 8 -> q_x!6 :: else fi;
    if :: p >= 2 && p - 2 < 8 -> q_x!7 :: else fi;
    done!0 } }
active proctype stream_m() { byte x; int k; xr q_m; xs copied;
  for (k : 1 .. 8) { q_m?x;
    if
      :: x == 0 -> copied!0
    fi } }
active proctype stream_d() { byte x; int k; xr q_d; xr copied; xs dist_wait; xs dist_forward;
  for (k : 1 .. 16) { q_d?x;
    if
      :: x == 1 -> copied?0
      :: x == 2 -> dist_wait!0; dist_forward!0
    fi } }
active proctype stream_x() { byte x; int k; xr q_x; xr dist_wait; xr dist_forward;
  for (k : 1 .. 40) { q_x?x;
    if
      :: x == 3 -> skip
      :: x == 4 -> dist_wait?0
      :: x == 5 -> dist_forward?0
      :: x == 6 -> skip
      :: x == 7 -> skip
    fi } }
