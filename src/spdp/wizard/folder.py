"""Names of what a folder holds that may be records, for a list to choose from."""

from pathlib import Path

LISTED = 200
SUFFIXES = (  # as in spdp.data.formats, which takes a second to load: a test compares them
    *(".npy", ".npz", ".mat", ".h5", ".hdf5", ".zarr", ".nii", ".nii.gz", ".csv", ".parquet"),
)


def offered(folder: Path) -> list[str]:
    """Names of files of a known format, and of folders; hidden ones are left out."""
    try:
        found = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []
    names = [e.name for e in found if e.name.lower().endswith(SUFFIXES) or e.is_dir()]
    return names[:LISTED]
