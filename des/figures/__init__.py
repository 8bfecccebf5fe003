"""Figures as values, drawn by matplotlib for paper and by plotly for pages."""
