"""What every public component gives out over the dev data, taken from two trees and compared.

`make record REF=<commit>` runs the calls of this folder with the code of that commit and with the code that is checked
out, and prints what differs. A call names all its settings, so that a default that changes does not show.
"""
