import { promisify } from 'node:util'
import { crc32, deflate } from 'node:zlib'
import type { Raster } from './raster.ts'

const compress = promisify(deflate)
const mark = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

const chunk = (name: string, data: Uint8Array): Buffer => {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const framed = Buffer.alloc(body.length + 8)
  framed.writeUInt32BE(data.length, 0)
  body.copy(framed, 4)
  framed.writeUInt32BE(crc32(body), body.length + 4)
  return framed
}

const paeth = (left: number, above: number, corner: number): number => {
  const guess = left + above - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)]
  if (a <= b && a <= c) return left
  return b <= c ? above : corner
}

/** Each row is written as its difference from its neighbours, in the form that has the smallest bytes. */
const filtered = ({ width, height, pixels }: Raster): Buffer => {
  const stride = width * 3
  const out = Buffer.alloc((stride + 1) * height)
  const forms = [1, 2, 4].map((type) => ({ type, row: Buffer.alloc(stride) }))
  for (let y = 0; y < height; y++) {
    let best: { type: number; row: Buffer; sum: number } | undefined
    for (const { type, row } of forms) {
      let sum = 0
      for (let x = 0; x < stride; x++) {
        const at = y * stride + x
        const left = x >= 3 ? pixels[at - 3]! : 0
        const above = y > 0 ? pixels[at - stride]! : 0
        const corner = x >= 3 && y > 0 ? pixels[at - stride - 3]! : 0
        const near = type === 1 ? left : type === 2 ? above : paeth(left, above, corner)
        const value = (pixels[at]! - near) & 255
        row[x] = value
        sum += value < 128 ? value : 256 - value
      }
      if (!best || sum < best.sum) best = { type, row, sum }
    }
    const start = y * (stride + 1)
    out[start] = best!.type
    best!.row.copy(out, start + 1)
  }
  return out
}

/** A PNG of eight bits a channel, without transparency. */
export const encodePng = async (raster: Raster): Promise<Buffer> => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(raster.width, 0)
  header.writeUInt32BE(raster.height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const data = await compress(filtered(raster), { level: 6 })
  return Buffer.concat([mark, chunk('IHDR', header), chunk('IDAT', data), chunk('IEND', new Uint8Array())])
}
