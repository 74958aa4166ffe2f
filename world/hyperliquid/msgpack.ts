/** The encoder of the action hash. Integers take the shortest form and are unsigned where possible. */
const encoder = new TextEncoder()

type Sink = { bytes: Uint8Array; view: DataView; at: number }

const reserve = (sink: Sink, size: number): number => {
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

const writeByte = (sink: Sink, value: number): void => {
  const at = reserve(sink, 1)
  sink.bytes[at] = value
}

const writeSized = (sink: Sink, head: number, value: number, size: 1 | 2 | 4): void => {
  writeByte(sink, head)
  const at = reserve(sink, size)
  if (size === 1) sink.view.setUint8(at, value)
  else if (size === 2) sink.view.setUint16(at, value)
  else sink.view.setUint32(at, value)
}

const writeInteger = (sink: Sink, value: number): void => {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} cannot be hashed`)
  if (value < 0) {
    if (value >= -32) writeByte(sink, value + 256)
    else if (value >= -128) writeSized(sink, 0xd0, value + 256, 1)
    else if (value >= -32_768) writeSized(sink, 0xd1, value + 65_536, 2)
    else if (value >= -2_147_483_648) writeSized(sink, 0xd2, value + 4_294_967_296, 4)
    else {
      writeByte(sink, 0xd3)
      const at = reserve(sink, 8)
      sink.view.setBigInt64(at, BigInt(value))
    }
  } else if (value < 128) writeByte(sink, value)
  else if (value < 256) writeSized(sink, 0xcc, value, 1)
  else if (value < 65_536) writeSized(sink, 0xcd, value, 2)
  else if (value < 4_294_967_296) writeSized(sink, 0xce, value, 4)
  else {
    // Never 0xd3 or a float: the venue hashes uint64, and rejects clients that do not.
    writeByte(sink, 0xcf)
    const at = reserve(sink, 8)
    sink.view.setBigUint64(at, BigInt(value))
  }
}

const writeText = (sink: Sink, value: string): void => {
  const utf8 = encoder.encode(value)
  if (utf8.length < 32) writeByte(sink, 0xa0 | utf8.length)
  else if (utf8.length < 256) writeSized(sink, 0xd9, utf8.length, 1)
  else if (utf8.length < 65_536) writeSized(sink, 0xda, utf8.length, 2)
  else writeSized(sink, 0xdb, utf8.length, 4)
  const at = reserve(sink, utf8.length)
  sink.bytes.set(utf8, at)
}

const writeLength = (sink: Sink, length: number, small: number, wide: number): void => {
  if (length < 16) writeByte(sink, small | length)
  else if (length < 65_536) writeSized(sink, wide, length, 2)
  else writeSized(sink, wide + 1, length, 4)
}

const writeValue = (sink: Sink, value: unknown): void => {
  if (value === null) writeByte(sink, 0xc0)
  else if (value === false) writeByte(sink, 0xc2)
  else if (value === true) writeByte(sink, 0xc3)
  else if (typeof value === 'number') writeInteger(sink, value)
  else if (typeof value === 'string') writeText(sink, value)
  else if (Array.isArray(value)) {
    writeLength(sink, value.length, 0x90, 0xdc)
    for (const item of value) writeValue(sink, item)
  } else if (typeof value === 'object') {
    const entries = Object.entries(value as Record<string, unknown>).filter(([, item]) => item !== undefined)
    writeLength(sink, entries.length, 0x80, 0xde)
    for (const [key, item] of entries) {
      writeText(sink, key)
      writeValue(sink, item)
    }
  } else throw new TypeError(`${typeof value} cannot be hashed`)
}

export const msgpack = (value: unknown): Uint8Array => {
  const bytes = new Uint8Array(256)
  const sink: Sink = { bytes, view: new DataView(bytes.buffer), at: 0 }
  writeValue(sink, value)
  return sink.bytes.subarray(0, sink.at)
}
