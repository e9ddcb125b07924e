"""Where does each batch and record end? The careful reader: by lengths, counts and positions, whatever a payload holds; behind damage it
says what it is sure of."""
