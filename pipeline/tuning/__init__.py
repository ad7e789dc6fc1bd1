"""Tuning a hybrid on rankings that its arms gave once: many settings tried, none by luck."""
