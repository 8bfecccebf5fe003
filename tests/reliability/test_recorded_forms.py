"""Files of version 1.0 stay readable: one of each form of ours is kept as it was written."""

import shutil

import pytest
from readers import OWN_FORMS, READERS, own_forms

SHIPPED = ("checkpoint",)
"""Forms whose recorded files come with the package."""
NAMES = [name for name in own_forms() if name not in SHIPPED]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_version_one_is_read(name, tmp_path):
    reader = READERS[name]
    kept = tmp_path / f"kept{reader.suffix}"
    shutil.copy(OWN_FORMS / f"{name.replace(' ', '_')}{reader.suffix}", kept)

    assert reader.read(kept) is not None


def test_every_form_has_its_file_and_no_other():
    kept = {path.stem.replace("_", " ") for path in OWN_FORMS.iterdir() if path.suffix != ".md"}

    assert kept == set(NAMES)
