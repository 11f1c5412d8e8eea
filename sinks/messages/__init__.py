"""The words and the picture of an alert, and how they fit into a channel.

`words` and `grouped` say everything in a `Draft`; `fit` leaves out what a channel has no room
for, least important first; `limits` knows how much room there is.
"""
