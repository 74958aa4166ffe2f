import { createHash } from 'node:crypto'

export type Random = () => number

/** sfc32 over a digest of everything that decides a picture: the same parts give the same numbers everywhere. */
export const randomOf = (...parts: readonly (string | number)[]): Random => {
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest()
  let [a, b, c, d] = [0, 4, 8, 12].map((at) => digest.readUInt32LE(at)) as [number, number, number, number]
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + sum) | 0
    return (sum >>> 0) / 4_294_967_296
  }
  for (let round = 0; round < 12; round++) next()
  return next
}

export const between = (random: Random, low: number, high: number): number => low + random() * (high - low)

/** Smooth noise from 0 to 1 over the plane. */
export const noiseOf = (random: Random): ((x: number, y: number) => number) => {
  const size = 256
  const table = Float32Array.from({ length: size * size }, random)
  const at = (x: number, y: number) => table[(y & 255) * size + (x & 255)]!
  const ease = (t: number) => t * t * (3 - 2 * t)
  return (x, y) => {
    const [left, top] = [Math.floor(x), Math.floor(y)]
    const [fx, fy] = [ease(x - left), ease(y - top)]
    const above = at(left, top) + (at(left + 1, top) - at(left, top)) * fx
    const below = at(left, top + 1) + (at(left + 1, top + 1) - at(left, top + 1)) * fx
    return above + (below - above) * fy
  }
}

/** Noise of several sizes, from 0 to 1. */
export const octaves = (
  noise: (x: number, y: number) => number,
  count: number,
): ((x: number, y: number) => number) => {
  return (x, y) => {
    let [sum, weight, scale] = [0, 0, 1]
    for (let octave = 0; octave < count; octave++) {
      sum += noise(x * scale, y * scale) / scale
      weight += 1 / scale
      scale *= 2
    }
    return sum / weight
  }
}
