export type ImageHeader = { contentType: 'image/png' | 'image/jpeg'; width: number; height: number }

const pngMark = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Returns the type and size of an image, or undefined if the bytes are neither PNG nor JPEG, or show no size. */
export function readImageHeader(given: Uint8Array): ImageHeader | undefined {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  const found = pngSize(bytes) ?? jpegSize(bytes)
  return found && found.width > 0 && found.height > 0 ? found : undefined
}

function pngSize(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < 33 || !bytes.subarray(0, 8).equals(pngMark)) return undefined
  if (bytes.readUInt32BE(8) !== 13 || bytes.toString('latin1', 12, 16) !== 'IHDR') return undefined
  return { contentType: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** The JPEG markers from C0 to CF begin a frame header, which contains the size, except for C4, C8 and CC. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
/** Whether a JPEG marker has no length behind it. */
const isBare = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)

function jpegSize(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < 4 || bytes[0] !== 0xff || bytes[1] !== 0xd8) return undefined
  let at = 2
  while (at + 9 < bytes.length) {
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1]!
    if (marker === 0xff) at += 1
    else if (isBare(marker)) at += 2
    else if (isFrame(marker))
      return {
        contentType: 'image/jpeg',
        width: bytes.readUInt16BE(at + 7),
        height: bytes.readUInt16BE(at + 5),
      }
    // The picture or the end of the file begins, and no frame header with a size came before.
    else if (marker === 0xda || marker === 0xd9) return undefined
    else {
      const length = bytes.readUInt16BE(at + 2)
      if (length < 2) return undefined
      at += 2 + length
    }
  }
  return undefined
}
