"""Gallery of the site: pictures that our own commands draw while the site is built."""


def gallery_page(folder):
    return without_pictures()


def without_pictures():
    return "Gallery\n=======\n\n"
