# SPDX-License-Identifier: Apache-2.0
"""ring_leave.py SCRIPT ...: run a script as a rank and leave at its end. The interpreter's own end is passed over: after
destroy_process_group a thread of PyTorch aborts there now and then ("terminate called without an active exception", 9 of
60 runs of the example, all of them after their last line). What a script raises still ends it with another exit code."""

import os
import runpy
import sys

sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
