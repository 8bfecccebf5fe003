"""Pictures of pages and of the gallery are of the data that their tables and commands have now."""

import pytest
from picture_inputs import file_digest, of_commands, of_gallery, of_tables, recorded


def data_of(found):
    return {name: recorded()[name][0] for name in found}


def test_pictures_of_tables_are_of_the_tables_that_there_are():
    found = of_tables()

    assert found == data_of(found)


@pytest.mark.parametrize("verb", ["simulate", pytest.param("decide", marks=pytest.mark.soak)])
def test_pictures_of_commands_are_of_what_the_commands_say(verb, tmp_path):
    found = of_commands(tmp_path, verb)

    assert found
    assert found == data_of(found)


def test_every_picture_that_is_kept_is_the_file_that_was_recorded():
    files = {name: file for name, (_, file) in recorded().items() if file}

    assert len(files) >= 8
    assert files == {name: file_digest(name) for name in files}


@pytest.mark.soak
def test_pictures_of_the_gallery_are_of_what_its_commands_say(tmp_path):
    found = of_gallery(tmp_path)

    assert found == data_of(found)
    assert {name for name in recorded() if name.startswith("gallery/")} == set(found)
