# words.py: the same from Python. python3 words.py ADDRESS words.rove TEXT
import ctypes
import struct
import sys

rove = ctypes.CDLL("librove.so.0")
handle, out = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
rove.rove_error_message.restype = ctypes.c_char_p
# ctypes passes integers as 32 bits, pointers among them, where a function's parameters are not declared.
rove.rove_connect.argtypes = [handle, ctypes.c_char_p, out]
rove.rove_call_begin.argtypes = [handle, handle, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, out]
rove.rove_call_wait.argtypes = [handle, ctypes.c_int, out, ctypes.POINTER(ctypes.c_size_t)]
for free in (rove.rove_call_free, rove.rove_package_close, rove.rove_node_destroy):
    free.argtypes, free.restype = [handle], None


def check(error):
    if error:
        sys.exit("words.py: " + rove.rove_error_message().decode())


node, peer, package, call, reply, size = handle(), handle(), handle(), handle(), handle(), ctypes.c_size_t()
text = sys.argv[3].encode()
check(rove.rove_node_create(None, ctypes.byref(node)))
check(rove.rove_connect(node, sys.argv[1].encode(), ctypes.byref(peer)))
check(rove.rove_package_open(sys.argv[2].encode(), ctypes.byref(package)))
check(rove.rove_call_begin(peer, package, b"words", text, len(text), ctypes.byref(call)))
check(rove.rove_call_wait(call, 5000, ctypes.byref(reply), ctypes.byref(size)))
print("%d words, %d in all" % struct.unpack("2l", ctypes.string_at(reply.value, size.value)))
rove.rove_call_free(call)  # the reply was copied before
rove.rove_package_close(package)
rove.rove_node_destroy(node)
