"""The Gymnasium placement task and its flat policy."""
