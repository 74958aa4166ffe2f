/** The writer behind the action hash. Integers take the shortest form and are unsigned where they can be. */
const encoder = new TextEncoder()

type Sink = { bytes: Uint8Array; view: DataView; at: number }

const room = (sink: Sink, size: number): number => {
  const at = sink.at
  if (at + size > sink.bytes.length) {
    const grown = new Uint8Array(Math.max(sink.bytes.length * 2, at + size))
    grown.set(sink.bytes)
    sink.bytes = grown
    sink.view = new DataView(grown.buffer)
  }
  sink.at = at + size
  return at
}

const byte = (sink: Sink, value: number): void => {
  const at = room(sink, 1)
  sink.bytes[at] = value
}

const sized = (sink: Sink, head: number, value: number, size: 1 | 2 | 4): void => {
  byte(sink, head)
  const at = room(sink, size)
  if (size === 1) sink.view.setUint8(at, value)
  else if (size === 2) sink.view.setUint16(at, value)
  else sink.view.setUint32(at, value)
}

const integer = (sink: Sink, value: number): void => {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} cannot be hashed`)
  if (value < 0) {
    if (value >= -32) byte(sink, value + 256)
    else if (value >= -128) sized(sink, 0xd0, value + 256, 1)
    else if (value >= -32_768) sized(sink, 0xd1, value + 65_536, 2)
    else if (value >= -2_147_483_648) sized(sink, 0xd2, value + 4_294_967_296, 4)
    else {
      byte(sink, 0xd3)
      const at = room(sink, 8)
      sink.view.setBigInt64(at, BigInt(value))
    }
  } else if (value < 128) byte(sink, value)
  else if (value < 256) sized(sink, 0xcc, value, 1)
  else if (value < 65_536) sized(sink, 0xcd, value, 2)
  else if (value < 4_294_967_296) sized(sink, 0xce, value, 4)
  else {
    // Never 0xd3 or a float: the venue hashes uint64, and a client that does not is refused there.
    byte(sink, 0xcf)
    const at = room(sink, 8)
    sink.view.setBigUint64(at, BigInt(value))
  }
}

const text = (sink: Sink, value: string): void => {
  const utf8 = encoder.encode(value)
  if (utf8.length < 32) byte(sink, 0xa0 | utf8.length)
  else if (utf8.length < 256) sized(sink, 0xd9, utf8.length, 1)
  else if (utf8.length < 65_536) sized(sink, 0xda, utf8.length, 2)
  else sized(sink, 0xdb, utf8.length, 4)
  const at = room(sink, utf8.length)
  sink.bytes.set(utf8, at)
}

const count = (sink: Sink, length: number, small: number, wide: number): void => {
  if (length < 16) byte(sink, small | length)
  else if (length < 65_536) sized(sink, wide, length, 2)
  else sized(sink, wide + 1, length, 4)
}

const any = (sink: Sink, value: unknown): void => {
  if (value === null) byte(sink, 0xc0)
  else if (value === false) byte(sink, 0xc2)
  else if (value === true) byte(sink, 0xc3)
  else if (typeof value === 'number') integer(sink, value)
  else if (typeof value === 'string') text(sink, value)
  else if (Array.isArray(value)) {
    count(sink, value.length, 0x90, 0xdc)
    for (const item of value) any(sink, item)
  } else if (typeof value === 'object') {
    const entries = Object.entries(value as Record<string, unknown>).filter(([, item]) => item !== undefined)
    count(sink, entries.length, 0x80, 0xde)
    for (const [key, item] of entries) {
      text(sink, key)
      any(sink, item)
    }
  } else throw new TypeError(`${typeof value} cannot be hashed`)
}

export const msgpack = (value: unknown): Uint8Array => {
  const bytes = new Uint8Array(256)
  const sink: Sink = { bytes, view: new DataView(bytes.buffer), at: 0 }
  any(sink, value)
  return sink.bytes.subarray(0, sink.at)
}
