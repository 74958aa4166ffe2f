import type { Motif } from './motif.ts'
import { between, type Random } from './random.ts'
import { type Color, eachPixel, mix, type Raster, smooth } from './raster.ts'

/** What is done to a picture once it is painted. */

const at = ({ width, height, pixels }: Raster, column: number, row: number): Color => {
  const index =
    (Math.min(height - 1, Math.max(0, row)) * width + Math.min(width - 1, Math.max(0, column))) * 3
  return [pixels[index]!, pixels[index + 1]!, pixels[index + 2]!]
}
const brightness = ([r, g, b]: Color): number => (r * 0.3 + g * 0.59 + b * 0.11) / 255

const copyOf = (raster: Raster): Raster => ({ ...raster, pixels: raster.pixels.slice() })

export const applyStyle = async (raster: Raster, style: Motif['style'], random: Random): Promise<void> => {
  if (style === 'pixel') await pixelate(raster)
  else if (style === 'low-poly') await facet(raster, random)
  else if (style === 'line') await ink(raster)
  else if (style === 'poster') await posterize(raster)
}

const stepped = (value: number, levels: number): number =>
  (Math.round((value / 255) * (levels - 1)) / (levels - 1)) * 255

const pixelate = async (raster: Raster): Promise<void> => {
  const blocks = 96
  const before = copyOf(raster)
  const size = Math.max(2, Math.round(raster.scale / blocks))
  await eachPixel(raster, (x, y) => {
    const [column, row] = [x * raster.scale, y * raster.scale].map(
      (each) => Math.floor(each / size) * size + (size >> 1),
    )
    const [r, g, b] = at(before, column!, row!)
    return [stepped(r, 7), stepped(g, 7), stepped(b, 6)]
  })
}

const posterize = async (raster: Raster): Promise<void> => {
  const before = copyOf(raster)
  const reach = Math.max(1, Math.round(raster.scale / 340))
  await eachPixel(raster, (x, y) => {
    const [column, row] = [Math.floor(x * raster.scale), Math.floor(y * raster.scale)]
    let sum: Color = [0, 0, 0]
    for (const [dx, dy] of [
      [0, 0],
      [reach, 0],
      [-reach, 0],
      [0, reach],
      [0, -reach],
    ] as const) {
      const [r, g, b] = at(before, column + dx, row + dy)
      sum = [sum[0] + r / 5, sum[1] + g / 5, sum[2] + b / 5]
    }
    return [stepped(sum[0], 5), stepped(sum[1], 5), stepped(sum[2], 5)]
  })
}

const paper: Color = [248, 244, 234]
const inkColor: Color = [32, 34, 48]

const ink = async (raster: Raster): Promise<void> => {
  const before = copyOf(raster)
  const reach = Math.max(1, Math.round(raster.scale / 500))
  await eachPixel(raster, (x, y, color) => {
    const [column, row] = [Math.floor(x * raster.scale), Math.floor(y * raster.scale)]
    const light = (dx: number, dy: number) => brightness(at(before, column + dx * reach, row + dy * reach))
    const across =
      light(1, -1) + 2 * light(1, 0) + light(1, 1) - light(-1, -1) - 2 * light(-1, 0) - light(-1, 1)
    const down =
      light(-1, 1) + 2 * light(0, 1) + light(1, 1) - light(-1, -1) - 2 * light(0, -1) - light(1, -1)
    const edge = smooth(0.1, 0.34, Math.hypot(across, down))
    // Hatching in the dark parts.
    const shade = brightness(color)
    const line = Math.abs((((x + y) * 90) % 1) - 0.5) < 0.13 ? smooth(0.3, 0.12, shade) * 0.7 : 0
    const wash = mix(paper, color, 0.1)
    return mix(wash, inkColor, Math.max(edge, line))
  })
}

/** Each cell of a grid with shifted corners becomes two triangles of one colour. */
const facet = async (raster: Raster, random: Random): Promise<void> => {
  const before = copyOf(raster)
  const cells = 26
  const size = raster.scale / cells
  const [columns, rows] = [Math.ceil(raster.width / size) + 2, Math.ceil(raster.height / size) + 2]
  const corners = Array.from({ length: columns * rows }, (_, index) => [
    ((index % columns) - 0.5 + between(random, -0.34, 0.34)) * size,
    (Math.floor(index / columns) - 0.5 + between(random, -0.34, 0.34)) * size,
  ])
  const side = (a: number[], b: number[], x: number, y: number) =>
    (b[0]! - a[0]!) * (y - a[1]!) - (b[1]! - a[1]!) * (x - a[0]!)
  const triangles = Array.from({ length: (columns - 1) * (rows - 1) }, (_, cell) => {
    const start = Math.floor(cell / (columns - 1)) * columns + (cell % (columns - 1))
    const [a, b, c, d] = [start, start + 1, start + columns, start + columns + 1].map(
      (index) => corners[index]!,
    )
    return cell % 2 === 0
      ? [
          [a!, b!, c!],
          [b!, d!, c!],
        ]
      : [
          [a!, b!, d!],
          [a!, d!, c!],
        ]
  }).flat()
  const { width, height, pixels } = raster
  for (const [index, [a, b, c]] of triangles.entries() as Iterable<
    [number, [number[], number[], number[]]]
  >) {
    if (index % 200 === 0) await new Promise((resolve) => setImmediate(resolve))
    const [mx, my] = [(a[0]! + b[0]! + c[0]!) / 3, (a[1]! + b[1]! + c[1]!) / 3]
    const samples = [[mx, my], ...[a, b, c].map((p) => [(p[0]! + 2 * mx) / 3, (p[1]! + 2 * my) / 3])]
    const sum = samples.map(([x, y]) => at(before, Math.round(x!), Math.round(y!)))
    const tone = ((index % 5) - 2) * 3
    const mean = [0, 1, 2].map(
      (channel) => sum.reduce((total, each) => total + each[channel]!, 0) / sum.length + tone,
    )
    const xs = [a[0]!, b[0]!, c[0]!]
    const ys = [a[1]!, b[1]!, c[1]!]
    const turns = Math.sign(side(a, b, c[0]!, c[1]!)) || 1
    for (let y = Math.max(0, Math.floor(Math.min(...ys))); y < Math.min(height, Math.max(...ys) + 1); y++)
      for (let x = Math.max(0, Math.floor(Math.min(...xs))); x < Math.min(width, Math.max(...xs) + 1); x++) {
        const inside = [
          side(a, b, x + 0.5, y + 0.5),
          side(b, c, x + 0.5, y + 0.5),
          side(c, a, x + 0.5, y + 0.5),
        ]
        if (!inside.every((each) => each * turns >= -1e-9)) continue
        for (let channel = 0; channel < 3; channel++) pixels[(y * width + x) * 3 + channel] = mean[channel]!
      }
  }
}

/** So strongly that nothing can be recognised: means over large squares, taken thrice. */
export const blur = async (raster: Raster): Promise<void> => {
  const radius = Math.max(4, Math.round(raster.scale / 11))
  const { width, height, pixels } = raster
  for (let pass = 0; pass < 3; pass++) {
    for (const [length, count, step, stride] of [
      [width, height, 3, width * 3],
      [height, width, width * 3, 3],
    ] as const)
      for (let line = 0; line < count; line++) {
        if (line % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
        for (let channel = 0; channel < 3; channel++)
          blurLine(pixels, { start: line * stride + channel, step, length, radius })
      }
  }
}

type Line = { start: number; step: number; length: number; radius: number }
const blurLine = (pixels: Uint8ClampedArray, { start, step, length, radius }: Line): void => {
  const before = Float64Array.from({ length }, (_, index) => pixels[start + index * step]!)
  const value = (index: number) => before[Math.min(length - 1, Math.max(0, index))]!
  let sum = 0
  for (let index = -radius; index <= radius; index++) sum += value(index)
  for (let index = 0; index < length; index++) {
    pixels[start + index * step] = sum / (2 * radius + 1)
    sum += value(index + radius + 1) - value(index - radius)
  }
}
