"""Pulls a plugin from a registry on this machine, or pushes one, with the client of ORAS for
Python: artifacts.py pull REFERENCE FOLDER, artifacts.py push REFERENCE COMPONENT CONFIG"""

import sys

import oras.client

command, reference, *paths = sys.argv[1:]
client = oras.client.OrasClient(insecure=True)
if command == "pull":
    (folder,) = paths
    print("\n".join(client.pull(target=reference, outdir=folder)))
else:
    component, config = paths
    pushed = client.push(
        target=reference,
        files=[f"{component}:application/wasm"],
        manifest_config=f"{config}:application/vnd.wasm.config.v0+json",
        disable_path_validation=True,
    )
    print(pushed.status_code)
