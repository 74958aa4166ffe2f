import { constants, crc32, deflateRawSync } from 'node:zlib'

export const acceptsGzip = (encodings: string | string[] | undefined): boolean =>
  /(?:^|[ ,])gzip(?:[ ,]|;q=(?:1|0\.0*[1-9])|$)/.test(String(encodings ?? ''))

export type GzipPart = { bytes: Buffer; deflated: Buffer }

export function gzipPart(text: string): GzipPart {
  const bytes = Buffer.from(text)
  // The part ends at a whole byte and is not the last block, so that others can follow.
  return { bytes, deflated: deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) }
}

const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])
const lastBlock = Buffer.from([3, 0])

/** Makes one gzip member of all parts, because some clients do not read a second one. */
export function gzipOf(parts: readonly GzipPart[]): Buffer<ArrayBuffer> {
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(parts.reduce((sum, { bytes }) => crc32(bytes, sum), 0))
  trailer.writeUInt32LE(
    parts.reduce((sum, { bytes }) => sum + bytes.length, 0),
    4,
  )
  return Buffer.concat([head, ...parts.map(({ deflated }) => deflated), lastBlock, trailer])
}
