"""What may stand on `events` and cannot be counted: value, and a word of the reason."""

NOW = 1_800_000_000.0

BAD_EVENTS = {
    "tombstone": (None, "not JSON"),
    "empty": (b"", "not JSON"),
    "not JSON": (b"hello", "not JSON"),
    "cut off": (b'{"seq":1,"time":5,"key"', "not JSON"),
    "no UTF-8": (b'{"seq":1,"time":5,"key":"\xff\xfe"}', "not JSON"),
    "nested too deep": (b"[" * 100_000, "not JSON"),
    "no object": (b"[1,2]", "a JSON list"),
    "no seq": (b'{"time":5,"key":"a"}', "seq=None"),
    "text for seq": (b'{"seq":"1","time":5,"key":"a"}', "seq='1'"),
    "fraction for seq": (b'{"seq":1.5,"time":5,"key":"a"}', "seq=1.5"),
    "true for seq": (b'{"seq":true,"time":5,"key":"a"}', "seq=True"),
    "negative seq": (b'{"seq":-1,"time":5,"key":"a"}', "seq=-1"),
    "seq beyond a long": (b'{"seq":99999999999999999999,"time":5,"key":"a"}', "seq=9999"),
    "NaN time": (b'{"seq":1,"time":NaN,"key":"a"}', "time=nan"),
    "infinite time": (b'{"seq":1,"time":Infinity,"key":"a"}', "time=inf"),
    "no time": (b'{"seq":1,"key":"a"}', "time=None"),
    "text for time": (b'{"seq":1,"time":"noon","key":"a"}', "time='noon'"),
    "negative time": (b'{"seq":1,"time":-5,"key":"a"}', "time=-5"),
    "far future": (b'{"seq":1,"time":1800000400,"key":"a"}', "400 s ahead"),
    "no key": (b'{"seq":1,"time":5}', "key=None"),
    "empty key": (b'{"seq":1,"time":5,"key":""}', "key=''"),
    "null for key": (b'{"seq":1,"time":5,"key":null}', "key=None"),
    "endless key": (b'{"seq":1,"time":5,"key":"' + b"x" * 201 + b'"}', "key='xxx"),
}
