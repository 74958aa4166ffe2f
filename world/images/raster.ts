/** A picture in memory: three bytes a pixel, and shapes with smooth edges in units of its shorter side. */

export type Color = readonly [number, number, number]
export type Raster = { width: number; height: number; scale: number; pixels: Uint8ClampedArray }
/** Negative within the shape; in units of the shorter side. */
export type Shape = (x: number, y: number) => number
export type Paint = Color | ((x: number, y: number) => Color)
export type Box = { left: number; top: number; right: number; bottom: number }

export const createRaster = (width: number, height: number): Raster => ({
  width,
  height,
  scale: Math.min(width, height),
  pixels: new Uint8ClampedArray(width * height * 3),
})

/** The width and the height in units. */
export const extent = ({ width, height, scale }: Raster) => ({ w: width / scale, h: height / scale })

export const mix = (one: Color, other: Color, share: number): Color => [
  one[0] + (other[0] - one[0]) * share,
  one[1] + (other[1] - one[1]) * share,
  one[2] + (other[2] - one[2]) * share,
]
export const clamp = (value: number): number => Math.min(1, Math.max(0, value))
export const smooth = (low: number, high: number, value: number): number => {
  const t = clamp((value - low) / (high - low))
  return t * t * (3 - 2 * t)
}

const rowsPerTurn = 24
/** So that other requests to the world are answered meanwhile. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Every pixel, from its colour before. */
export const eachPixel = async (
  { width, height, scale, pixels }: Raster,
  paint: (x: number, y: number, before: Color) => Color,
): Promise<void> => {
  for (let row = 0; row < height; row++) {
    if (row % rowsPerTurn === 0) await nextTurn()
    for (let column = 0; column < width; column++) {
      const at = (row * width + column) * 3
      const before: Color = [pixels[at]!, pixels[at + 1]!, pixels[at + 2]!]
      const [r, g, b] = paint((column + 0.5) / scale, (row + 0.5) / scale, before)
      pixels[at] = r
      pixels[at + 1] = g
      pixels[at + 2] = b
    }
  }
}

/** Fills a shape within a box. `soft`: the width of its edge beside the least one. */
export const fill = async (
  raster: Raster,
  box: Box,
  shape: Shape,
  paint: Paint,
  { opacity = 1, soft = 0 }: { opacity?: number; soft?: number } = {},
): Promise<void> => {
  const { width, height, scale, pixels } = raster
  const edge = 0.75 / scale + soft
  const [first, last] = [
    Math.max(0, Math.floor(box.top * scale)),
    Math.min(height, Math.ceil(box.bottom * scale)),
  ]
  const [start, end] = [
    Math.max(0, Math.floor(box.left * scale)),
    Math.min(width, Math.ceil(box.right * scale)),
  ]
  for (let row = first; row < last; row++) {
    if ((row - first) % (rowsPerTurn * 4) === 0) await nextTurn()
    for (let column = start; column < end; column++) {
      const [x, y] = [(column + 0.5) / scale, (row + 0.5) / scale]
      const distance = shape(x, y)
      if (distance >= edge) continue
      const cover = opacity * (distance <= -edge ? 1 : clamp(0.5 - distance / (2 * edge)))
      const color = typeof paint === 'function' ? paint(x, y) : paint
      const at = (row * width + column) * 3
      for (let channel = 0; channel < 3; channel++) {
        const before = pixels[at + channel]!
        pixels[at + channel] = before + (color[channel]! - before) * cover
      }
    }
  }
}

export const circle =
  (cx: number, cy: number, radius: number): Shape =>
  (x, y) =>
    Math.hypot(x - cx, y - cy) - radius
export const ellipse =
  (cx: number, cy: number, rx: number, ry: number, angle = 0): Shape =>
  (x, y) => {
    const [c, s] = [Math.cos(angle), Math.sin(angle)]
    const [dx, dy] = [(x - cx) * c + (y - cy) * s, (y - cy) * c - (x - cx) * s]
    const k = Math.hypot(dx / rx, dy / ry)
    return (k - 1) * Math.min(rx, ry)
  }
/** A line with round ends, of one width or tapering to another. */
export const limb =
  (ax: number, ay: number, bx: number, by: number, from: number, to = from): Shape =>
  (x, y) => {
    const [dx, dy] = [bx - ax, by - ay]
    const t = clamp(((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy))
    return Math.hypot(x - ax - dx * t, y - ay - dy * t) - (from + (to - from) * t)
  }
export const rectangle =
  (left: number, top: number, right: number, bottom: number, round = 0): Shape =>
  (x, y) => {
    const dx = Math.max(left + round - x, x - right + round)
    const dy = Math.max(top + round - y, y - bottom + round)
    return Math.min(Math.max(dx, dy), 0) + Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) - round
  }
export const polygon = (points: readonly (readonly [number, number])[]): Shape => {
  return (x, y) => {
    let [inside, nearest] = [false, Number.POSITIVE_INFINITY]
    for (const [index, [bx, by]] of points.entries()) {
      const [ax, ay] = points[(index + points.length - 1) % points.length]!
      nearest = Math.min(nearest, limb(ax, ay, bx, by, 0)(x, y))
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside
    }
    return inside ? -nearest : nearest
  }
}
/** Shapes that melt into each other over a distance. */
export const joined =
  (over: number, ...shapes: readonly Shape[]): Shape =>
  (x, y) =>
    shapes
      .map((shape) => shape(x, y))
      .reduce((one, other) => {
        const share = clamp(0.5 + (0.5 * (other - one)) / over)
        return other + (one - other) * share - over * share * (1 - share)
      })
/** A shape around a point, turned and enlarged. */
export const placed =
  (shape: Shape, cx: number, cy: number, size: number, { angle = 0, flip = false } = {}): Shape =>
  (x, y) => {
    const [c, s] = [Math.cos(angle), Math.sin(angle)]
    const [dx, dy] = [(x - cx) / size, (y - cy) / size]
    const turned = dx * c + dy * s
    return shape(flip ? -turned : turned, dy * c - dx * s) * size
  }
export const around = (cx: number, cy: number, reach: number): Box => ({
  left: cx - reach,
  top: cy - reach,
  right: cx + reach,
  bottom: cy + reach,
})
export const whole: Box = { left: 0, top: 0, right: 99, bottom: 99 }
