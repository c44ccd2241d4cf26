# SPDX-License-Identifier: Apache-2.0
"""As if there were no wheel, whatever this machine has installed."""

raise ModuleNotFoundError("No module named 'mooncake'", name="mooncake")
