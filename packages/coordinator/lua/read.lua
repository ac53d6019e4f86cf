-- Reads a namespace, as observe.lua says.
return found()
